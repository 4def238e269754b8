import { feedForwardOf, type T5Config } from "./config.ts";
import { attention, type ModelCenterModel, type ModelCenterTensor, modules } from "../formats/model-center.ts";

const plain = { bias: false };

/** T5: relative biases stand beside the stacks there, in the first layer of each with Hugging Face. */
export function modelCenterT5(config: T5Config): ModelCenterModel {
  const { num_layers, num_decoder_layers, tie_word_embeddings: isTied } = config;
  const { isGated } = feedForwardOf(config);
  const stack = (name: "encoder" | "decoder", numLayers: number): ModelCenterTensor[] => {
    const isDecoder = name === "decoder";
    return [
      ...Array.from({ length: numLayers }, (_, index) => {
        const [there, here] = [`${name}.layers.${index}`, `${name}.block.${index}.layer`];
        const last = isDecoder ? 2 : 1;
        return [
          ...half(`${there}.self_att`, `${here}.0`, "SelfAttention"),
          ...(isDecoder ? half(`${there}.cross_att`, `${here}.1`, "EncDecAttention") : []),
          ...modules([[`${there}.ffn.layernorm_before_ffn`, `${here}.${last}.layer_norm`]], plain),
          ...modules(
            isGated
              ? [
                  [`${there}.ffn.ffn.w_in.w_0`, `${here}.${last}.DenseReluDense.wi_0`],
                  [`${there}.ffn.ffn.w_in.w_1`, `${here}.${last}.DenseReluDense.wi_1`],
                ]
              : [[`${there}.ffn.ffn.w_in.w`, `${here}.${last}.DenseReluDense.wi`]],
            plain,
          ),
          ...modules([[`${there}.ffn.ffn.w_out`, `${here}.${last}.DenseReluDense.wo`]], plain),
        ];
      }).flat(),
      ...modules([[`${name}.output_layernorm`, `${name}.final_layer_norm`]], plain),
      {
        name: `position_bias_${isDecoder ? "dec" : "enc"}.relative_attention_bias`,
        of: `${name}.block.0.layer.0.SelfAttention.relative_attention_bias.weight`,
      },
    ];
  };
  return {
    tensors: [
      ...modules([["input_embedding", "shared"]], plain),
      ...stack("encoder", num_layers),
      ...stack("decoder", num_decoder_layers),
      ...(isTied ? [] : modules([["output_projection", "lm_head"]], plain)),
    ],
    ignored: [/^cls_projection\./],
    ignoredHere: [
      /^(encoder|decoder)\.embed_tokens\.weight$/,
      /\.EncDecAttention\.relative_attention_bias\.weight$/,
      ...(isTied ? [/^lm_head\.weight$/] : []),
    ],
  };
}

function half(there: string, here: string, kind: string): ModelCenterTensor[] {
  const maps = ["q", "k", "v", "o"].map((map) => `${here}.${kind}.${map}`);
  return [
    ...modules([[`${there}.layernorm_before_attention`, `${here}.layer_norm`]], plain),
    ...attention(there, maps as [string, string, string, string], plain),
  ];
}
