import { attentionMaps, everywhere, ignoring, type ModelCenterForm } from "../formats/model-center.ts";
import { below, eachLayer, modules, weights } from "../formats/weight-map.ts";
import type { LlamaConfig } from "./config.ts";

/** ModelCenter's LLaMA. */
const form: ModelCenterForm<LlamaConfig> = {
  architecture: ["Llama", "ForCausalLM"],
  fields: {
    vocab_size: [32000, "vocab_size"],
    dim_model: [4096, "hidden_size"],
    num_heads: [32, "num_attention_heads"],
    num_heads_kv: [-1, "num_key_value_heads"],
    dim_head: [128, "head_dim"],
    dim_ff: [11008, "intermediate_size"],
    num_layers: [32, "num_hidden_layers"],
    dropout_p: [0, "attention_dropout"],
    norm_eps: [1e-6, "rms_norm_eps"],
    att_init_std: [0.02, "initializer_range"],
    att_bias: [false, "attention_bias"],
    ffn_bias: [false, "mlp_bias"],
    ffn_activate_fn: ["gated_silu", "hidden_act"],
    tied: [false, "tie_word_embeddings"],
  },
  spellings: {
    num_heads_kv: [[-1, null]],
    ffn_activate_fn: [
      ["gated_silu", "silu"],
      ["gated_gelu", "gelu"],
      ["gated_gelu_new", "gelu_new"],
      ["gated_relu", "relu"],
    ],
  },
  fixed: {
    ...everywhere,
    attn_scale: true,
    norm_bias: false,
    pos_bias_type: "rotary",
    post_layer_norm: false,
  },
  fixedHere: { rope_parameters: { rope_type: "default", rope_theta: 10000 } },
  matches: (has) =>
    has("encoder.layers.") &&
    has(".w_in.w_0.") &&
    !["position_bias_enc.", "token_type_embedding.", "position_embedding."].some(has),
  model: ({ num_hidden_layers, tie_word_embeddings: isTied, attention_bias, mlp_bias }) => {
    const ofAttention = attention_bias ? modules : weights;
    const ofFeedForward = mlp_bias ? modules : weights;
    return {
      tensors: [
        ...weights({ input_embedding: "model.embed_tokens" }),
        ...eachLayer(num_hidden_layers, "encoder.layers", "model.layers", [
          ...weights({
            "self_att.layernorm_before_attention": "input_layernorm",
            "ffn.layernorm_before_ffn": "post_attention_layernorm",
          }),
          ...attentionMaps("self_att", "self_attn", ["q_proj", "k_proj", "v_proj", "o_proj"], ofAttention),
          ...below(
            "ffn.ffn",
            "mlp",
            ofFeedForward({ "w_in.w_0": "gate_proj", "w_in.w_1": "up_proj", w_out: "down_proj" }),
          ),
        ]),
        ...weights({ "encoder.output_layernorm": "model.norm" }),
        ...(isTied ? [] : weights({ output_projection: "lm_head" })),
      ],
      ...ignoring(isTied),
    };
  },
};
export default form;
