import { decoder, ignoring, type ModelCenterForm, withInnerWidth } from "../formats/model-center.ts";
import { eachLayer, modules, weights } from "../formats/weight-map.ts";
import type { GPT2Config } from "./config.ts";

/** ModelCenter's GPT-2: it has three maps where Hugging Face has one transposed matrix. */
const form: ModelCenterForm<GPT2Config> = {
  architecture: ["GPT2", "LMHeadModel"],
  fields: {
    vocab_size: [50258, "vocab_size"],
    dim_model: [1024, "n_embd"],
    num_heads: [16, "n_head"],
    dim_ff: [4096, "n_inner"],
    num_layers: [24, "n_layer"],
    dropout_p: [0, "resid_pdrop", "embd_pdrop", "attn_pdrop"],
    position_size: [1024, "n_positions"],
    norm_eps: [1e-5, "layer_norm_epsilon"],
    att_init_std: [0.02, "initializer_range"],
    ffn_activate_fn: ["gelu", "activation_function"],
    tied: [true, "tie_word_embeddings"],
  },
  fixed: decoder,
  fixedHere: { scale_attn_weights: true, scale_attn_by_inverse_layer_idx: false },
  matches: (has) =>
    has("encoder.layers.") &&
    has("position_embedding.") &&
    !["position_bias_enc.", "token_type_embedding."].some(has),
  complete: withInnerWidth,
  model: ({ n_layer, tie_word_embeddings: isTied }) => ({
    tensors: [
      ...weights({ input_embedding: "transformer.wte", position_embedding: "transformer.wpe" }),
      ...eachLayer(n_layer, "encoder.layers", "transformer.h", [
        ...modules({ "self_att.layernorm_before_attention": "ln_1", "ffn.layernorm_before_ffn": "ln_2" }),
        ...["project_q", "project_k", "project_v"].flatMap((map, third) =>
          modules({ [`self_att.self_attention.${map}`]: "attn.c_attn" }, { third, transposed: true }),
        ),
        ...modules(
          {
            "self_att.self_attention.attention_out": "attn.c_proj",
            "ffn.ffn.w_in.w": "mlp.c_fc",
            "ffn.ffn.w_out": "mlp.c_proj",
          },
          { transposed: true },
        ),
      ]),
      ...modules({ "encoder.output_layernorm": "transformer.ln_f" }),
      ...(isTied ? [] : weights({ output_projection: "lm_head" })),
    ],
    ...ignoring(isTied),
  }),
};
export default form;
