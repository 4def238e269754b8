import {
  attentionMaps,
  everywhere,
  type ModelCenterForm,
  type ModelCenterTensor,
} from "../formats/model-center.ts";
import { below, eachLayer, tensors, weights } from "../formats/weight-map.ts";
import { feedForwardOf, type T5Config } from "./config.ts";

/** ModelCenter's T5: relative biases are beside the stacks there, and in each stack's first layer in Hugging Face. */
const form: ModelCenterForm<T5Config> = {
  architecture: ["T5", "ForConditionalGeneration"],
  fields: {
    vocab_size: [32128, "vocab_size"],
    dim_model: [768, "d_model"],
    num_heads: [12, "num_heads"],
    dim_head: [64, "d_kv"],
    dim_ff: [3072, "d_ff"],
    num_encoder_layers: [12, "num_layers"],
    num_decoder_layers: [12, "num_decoder_layers"],
    dropout_p: [0, "dropout_rate"],
    position_bias_num_buckets: [32, "relative_attention_num_buckets"],
    position_bias_max_distance: [128, "relative_attention_max_distance"],
    norm_eps: [1e-6, "layer_norm_epsilon"],
    ffn_activate_fn: ["relu", "feed_forward_proj"],
    tied: [true, "tie_word_embeddings"],
  },
  spellings: {
    ffn_activate_fn: [
      ["gated_gelu_new", "gated-gelu"], // Hugging Face's name of the tanh form
      ["gated_relu", "gated-relu"],
      ["gated_silu", "gated-silu"],
      ["gelu_new", "gelu_new"],
      ["gelu", "gelu"],
      ["relu", "relu"],
    ],
  },
  fixed: {
    ...everywhere,
    norm_bias: false,
    att_bias: false,
    ffn_bias: false,
    proj_bias: false,
    attn_scale: false,
    pos_bias_type: "relative",
    post_layer_norm: false,
    // ModelCenter's original T5s have `scale`: their weights are a hundredth of Hugging Face's.
    scale: null,
  },
  fixedHere: { scale_decoder_outputs: false },
  matches: (has) => has("position_bias_enc."),
  model: (config) => {
    const { num_layers, num_decoder_layers, tie_word_embeddings: isTied } = config;
    const { isGated } = feedForwardOf(config);
    return {
      tensors: [
        ...weights({ input_embedding: "shared" }),
        ...stack("encoder", num_layers, isGated),
        ...stack("decoder", num_decoder_layers, isGated),
        ...(isTied ? [] : weights({ output_projection: "lm_head" })),
      ],
      ignored: [/^cls_projection\./],
      ignoredHere: [
        /^(encoder|decoder)\.embed_tokens\.weight$/,
        /\.EncDecAttention\.relative_attention_bias\.weight$/,
        ...(isTied ? [/^lm_head\.weight$/] : []),
      ],
    };
  },
};
export default form;

function stack(name: "encoder" | "decoder", numLayers: number, isGated: boolean): ModelCenterTensor[] {
  const [last, short] = name === "decoder" ? [2, "dec"] : [1, "enc"];
  const inner = isGated ? { "ffn.w_in.w_0": "wi_0", "ffn.w_in.w_1": "wi_1" } : { "ffn.w_in.w": "wi" };
  return [
    ...eachLayer(numLayers, `${name}.layers`, `${name}.block`, [
      ...attention("self_att", "layer.0", "SelfAttention"),
      ...(name === "decoder" ? attention("cross_att", "layer.1", "EncDecAttention") : []),
      ...weights({ "ffn.layernorm_before_ffn": `layer.${last}.layer_norm` }),
      ...below("ffn", `layer.${last}.DenseReluDense`, weights({ ...inner, "ffn.w_out": "wo" })),
    ]),
    ...weights({ [`${name}.output_layernorm`]: `${name}.final_layer_norm` }),
    ...tensors({
      [`position_bias_${short}.relative_attention_bias`]: `${name}.block.0.layer.0.SelfAttention.relative_attention_bias.weight`,
    }),
  ];
}

function attention(there: string, here: string, kind: string): ModelCenterTensor[] {
  return [
    ...weights({ [`${there}.layernorm_before_attention`]: `${here}.layer_norm` }),
    ...attentionMaps(there, `${here}.${kind}`, ["q", "k", "v", "o"], weights),
  ];
}
