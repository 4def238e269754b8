import { attentionMaps, decoder, ignoring, type ModelCenterForm } from "../formats/model-center.ts";
import { eachLayer, modules, weights } from "../formats/weight-map.ts";
import type { OPTConfig } from "./config.ts";

/** ModelCenter's OPT, with norms before the halves of a layer. */
const form: ModelCenterForm<OPTConfig> = {
  architecture: ["OPT", "ForCausalLM"],
  fields: {
    vocab_size: [50272, "vocab_size"],
    dim_model: [768, "hidden_size"],
    num_heads: [12, "num_attention_heads"],
    dim_ff: [3072, "ffn_dim"],
    num_layers: [12, "num_hidden_layers"],
    dropout_p: [0.1, "dropout", "attention_dropout"],
    pad_token_id: [1, "pad_token_id"],
    position_size: [2048, "max_position_embeddings"],
    att_init_std: [0.02, "init_std"],
    ffn_activate_fn: ["relu", "activation_function"],
  },
  fixed: { ...decoder, norm_eps: 1e-5 },
  fixedHere: {
    do_layer_norm_before: true,
    _remove_final_layer_norm: false,
    enable_bias: true,
    tie_word_embeddings: true,
  },
  equalHere: { word_embed_proj_dim: "hidden_size" },
  matches: (has) => !has("encoder.layers.") && !has("position_bias_enc."),
  model: ({ num_hidden_layers }) => ({
    tensors: [
      ...weights({
        input_embedding: "model.decoder.embed_tokens",
        position_embedding: "model.decoder.embed_positions",
      }),
      ...eachLayer(num_hidden_layers, "decoder.layers", "model.decoder.layers", [
        ...attentionMaps("self_att", "self_attn", ["q_proj", "k_proj", "v_proj", "out_proj"]),
        ...modules({
          "self_att.layernorm_before_attention": "self_attn_layer_norm",
          "ffn.layernorm_before_ffn": "final_layer_norm",
          "ffn.ffn.w_in.w": "fc1",
          "ffn.ffn.w_out": "fc2",
        }),
      ]),
      ...modules({ "decoder.output_layernorm": "model.decoder.final_layer_norm" }),
    ],
    ...ignoring(true),
  }),
};
export default form;
