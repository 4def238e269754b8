import { bookkeeping, type FairseqForm } from "../formats/fairseq.ts";
import { below, modules, type WeightRow, weights } from "../formats/weight-map.ts";

const layer: readonly WeightRow[] = modules({
  "self_attn.q_proj": "attention.self.query",
  "self_attn.k_proj": "attention.self.key",
  "self_attn.v_proj": "attention.self.value",
  "self_attn.out_proj": "attention.output.dense",
  self_attn_layer_norm: "attention.output.LayerNorm",
  fc1: "intermediate.dense",
  fc2: "output.dense",
  final_layer_norm: "output.LayerNorm",
});

/**
 * RoBERTa, or an equal family, with its head for masked words or labels. FairSeq's model has no token types: Hugging Face's are zeros.
 * @param prefix - of Hugging Face's names: "roberta"
 */
export function fairseqEncoder(prefix: string): FairseqForm {
  return (config, architecture) => {
    const { hidden_size: width, type_vocab_size: numTypes = 1 } = config as Readonly<Record<string, number>>;
    const isClassifier = architecture.endsWith("ForSequenceClassification");
    const [stack, embeddings] = ["encoder.sentence_encoder", `${prefix}.embeddings`];
    const classifier = "classification_heads.sentence_classification_head";
    return {
      rows: [
        ...weights({
          [`${stack}.embed_tokens`]: `${embeddings}.word_embeddings`,
          [`${stack}.embed_positions`]: `${embeddings}.position_embeddings`,
        }),
        ...modules({ [`${stack}.layernorm_embedding`]: `${embeddings}.LayerNorm` }),
        ...below(`${stack}.layers.*`, `${prefix}.encoder.layer.*`, layer),
        ...(isClassifier
          ? below(classifier, "classifier", modules({ dense: "dense", out_proj: "out_proj" }))
          : [
              ...modules({
                "encoder.lm_head.dense": "lm_head.dense",
                "encoder.lm_head.layer_norm": "lm_head.layer_norm",
              }),
              ...weights({ "encoder.lm_head": `${embeddings}.word_embeddings` }),
              { there: "encoder.lm_head.bias", here: "lm_head.bias" },
            ]),
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
      zeros: { [`${embeddings}.token_type_embeddings.weight`]: [numTypes, width as number] },
    };
  };
}

export default fairseqEncoder("roberta");
