import { bookkeeping, type FairseqModel, type NamePair, pairsBelow } from "../formats/fairseq.ts";

const same = (name: string): NamePair => [name, name];

const attention = (name: string): NamePair[] => [
  ...["q_proj", "k_proj", "v_proj", "out_proj"].map((map) => same(`${name}.${map}`)),
  same(`${name}_layer_norm`),
];

const layer: readonly NamePair[] = [
  ...attention("self_attn"),
  ...["fc1", "fc2", "final_layer_norm"].map(same),
];

/** BART: FairSeq's names below `model.`, its words once for each stack and the output layer. What is added to the logits is zero. */
export function fairseqBart({ vocab_size }: { readonly vocab_size: number }): FairseqModel {
  const stack = (name: string, inner: readonly NamePair[]): NamePair[] =>
    pairsBelow(name, `model.${name}`, [
      ...["embed_positions.weight", "layernorm_embedding"].map(same),
      ...pairsBelow("layers.*", "layers.*", inner),
    ]);
  const words = [
    "encoder.embed_tokens.weight",
    "decoder.embed_tokens.weight",
    "decoder.output_projection.weight",
  ];
  return {
    pairs: [
      ...words.map((name): NamePair => [name, "model.shared.weight"]),
      ...stack("encoder", layer),
      ...stack("decoder", [...layer, ...attention("encoder_attn")]),
    ],
    renamed: [[/^model\.(?=encoder|decoder)/, ""]],
    ignored: [...bookkeeping, /^classification_heads\./],
    zeros: { final_logits_bias: [1, vocab_size] },
  };
}
