import { bookkeeping, type FairseqModel, type NamePair, pairsBelow } from "../formats/fairseq.ts";

/** What the names of a text encoder depend on, by the field names of its config.json. */
export interface FairseqEncoderConfig {
  readonly hidden_size: number;
  readonly type_vocab_size?: number;
}

const layer: readonly NamePair[] = [
  ["self_attn.q_proj", "attention.self.query"],
  ["self_attn.k_proj", "attention.self.key"],
  ["self_attn.v_proj", "attention.self.value"],
  ["self_attn.out_proj", "attention.output.dense"],
  ["self_attn_layer_norm", "attention.output.LayerNorm"],
  ["fc1", "intermediate.dense"],
  ["fc2", "output.dense"],
  ["final_layer_norm", "output.LayerNorm"],
];

/**
 * RoBERTa, or data2vec's model of text, with its head over the words or over labels. FairSeq's has no token types: Hugging Face's
 * are zeros.
 * @param prefix - of Hugging Face's names: "roberta"
 * @param isClassifier - whether the head is that of a sequence classification; else that of masked words
 */
export function fairseqTextEncoder(
  { hidden_size, type_vocab_size = 1 }: FairseqEncoderConfig,
  prefix: string,
  isClassifier: boolean,
): FairseqModel {
  const stack = "encoder.sentence_encoder";
  const words = `${prefix}.embeddings.word_embeddings.weight`;
  const classifier = "classification_heads.sentence_classification_head";
  const head: readonly NamePair[] = isClassifier
    ? pairsBelow(classifier, "classifier", [
        ["dense", "dense"],
        ["out_proj", "out_proj"],
      ])
    : [
        ["encoder.lm_head.dense", "lm_head.dense"],
        ["encoder.lm_head.layer_norm", "lm_head.layer_norm"],
        ["encoder.lm_head.weight", words],
        ["encoder.lm_head.bias", "lm_head.bias"],
      ];
  return {
    pairs: [
      [`${stack}.embed_tokens.weight`, words],
      [`${stack}.embed_positions.weight`, `${prefix}.embeddings.position_embeddings.weight`],
      [`${stack}.layernorm_embedding`, `${prefix}.embeddings.LayerNorm`],
      ...pairsBelow(`${stack}.layers.*`, `${prefix}.encoder.layer.*`, layer),
      ...head,
    ],
    renamed: [
      [/^decoder\.(sentence_encoder|lm_head)\./, "encoder.$1."],
      [/\.emb_layer_norm\./, ".layernorm_embedding."],
      [/^classification_heads\.[^.]+\./, `${classifier}.`],
    ],
    ignored: [
      ...bookkeeping,
      /^encoder\.regression_head\./,
      isClassifier ? /^encoder\.lm_head\./ : /^classification_heads\./,
    ],
    zeros: { [`${prefix}.embeddings.token_type_embeddings.weight`]: [type_vocab_size, hidden_size] },
  };
}
