import {
  attentionMaps,
  decoder,
  ignoring,
  type ModelCenterForm,
  withInnerWidth,
} from "../formats/model-center.ts";
import { eachLayer, modules, weights } from "../formats/weight-map.ts";
import type { GPTJConfig } from "./config.ts";

/** ModelCenter's GPT-J: each half of a layer has its own norm there, with equal values. */
const form: ModelCenterForm<GPTJConfig> = {
  architecture: ["GPTJ", "ForCausalLM"],
  fields: {
    vocab_size: [50400, "vocab_size"],
    dim_model: [4096, "n_embd"],
    num_heads: [16, "n_head"],
    dim_ff: [16384, "n_inner"],
    num_layers: [28, "n_layer"],
    pos_rotary_dim: [64, "rotary_dim"],
    dropout_p: [0, "resid_pdrop", "attn_pdrop"],
    norm_eps: [1e-5, "layer_norm_epsilon"],
    att_init_std: [0.1, "initializer_range"],
    ffn_activate_fn: ["gelu", "activation_function"],
    tied: [false, "tie_word_embeddings"],
  },
  fixed: { ...decoder, att_bias: false, pos_bias_type: "rotary" },
  fixedHere: {},
  matches: (has) =>
    has("encoder.layers.") &&
    !["position_bias_enc.", "token_type_embedding.", "position_embedding.", ".w_in.w_0."].some(has),
  complete: withInnerWidth,
  model: ({ n_layer, tie_word_embeddings: isTied }) => ({
    tensors: [
      ...weights({ input_embedding: "transformer.wte" }),
      ...eachLayer(n_layer, "encoder.layers", "transformer.h", [
        ...modules({ "self_att.layernorm_before_attention": "ln_1" }),
        ...modules({ "ffn.layernorm_before_ffn": "ln_1" }, { copy: "equal" as const }),
        ...attentionMaps("self_att", "attn", ["q_proj", "k_proj", "v_proj", "out_proj"], weights),
        ...modules({ "ffn.ffn.w_in.w": "mlp.fc_in", "ffn.ffn.w_out": "mlp.fc_out" }),
      ]),
      ...modules({ "encoder.output_layernorm": "transformer.ln_f" }),
      ...(isTied ? [] : modules({ output_projection: "lm_head" })),
    ],
    ...ignoring(isTied),
  }),
};
export default form;
