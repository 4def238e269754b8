import { attention, type ModelCenterModel, type ModelCenterTensor, modules } from "../formats/model-center.ts";

/** What the names of a BERT or RoBERTa depend on, by the field names of its config.json. */
export interface ModelCenterEncoder {
  readonly num_hidden_layers: number;
}

/** How one of the two names its head over the words. */
interface WordHead {
  readonly dense: string;
  readonly norm: string;
  readonly bias: string;
}

const wordHeads: Readonly<Record<"bert" | "roberta", WordHead>> = {
  bert: {
    dense: "cls.predictions.transform.dense",
    norm: "cls.predictions.transform.LayerNorm",
    bias: "cls.predictions.bias",
  },
  roberta: {
    dense: "lm_head.dense",
    norm: "lm_head.layer_norm",
    bias: "lm_head.bias",
  },
};

/**
 * BERT or RoBERTa. ModelCenter normalises what goes into a half of a layer, sum included, Hugging Face what comes out of it: each
 * norm stands one place further on.
 * @param head - what follows `For` in the architecture's name, empty for the stack alone
 */
export function modelCenterEncoder(
  family: "bert" | "roberta",
  { num_hidden_layers: numLayers }: ModelCenterEncoder,
  head: string,
): ModelCenterModel {
  const outNorm = (index: number) =>
    index < 0 ? `${family}.embeddings.LayerNorm` : `${family}.encoder.layer.${index}.output.LayerNorm`;
  const layers = Array.from({ length: numLayers }, (_, index) => {
    const [there, here] = [`encoder.layers.${index}`, `${family}.encoder.layer.${index}`];
    const maps = ["query", "key", "value"].map((map) => `${here}.attention.self.${map}`);
    return [
      ...attention(`${there}.self_att`, [
        ...(maps as [string, string, string]),
        `${here}.attention.output.dense`,
      ]),
      ...modules([
        [`${there}.self_att.layernorm_before_attention`, outNorm(index - 1)],
        [`${there}.ffn.layernorm_before_ffn`, `${here}.attention.output.LayerNorm`],
        [`${there}.ffn.ffn.w_in.w`, `${here}.intermediate.dense`],
        [`${there}.ffn.ffn.w_out`, `${here}.output.dense`],
      ]),
    ];
  });
  const words = `${family}.embeddings.word_embeddings`;
  const { dense, norm, bias } = wordHeads[family];
  const overWords: ModelCenterTensor[] = [
    ...modules([
      ["lm_head.dense", dense],
      ["lm_head.layer_norm", norm],
    ]),
    { name: "lm_head.decoder.weight", of: `${words}.weight`, copy: "unread" },
    { name: "lm_head.decoder.bias", of: bias },
  ];
  const heads: Readonly<Record<string, readonly ModelCenterTensor[]>> = {
    MaskedLM: overWords,
    TokenClassification: modules([["cls_projection", "classifier"]]),
  };
  const pooler = family === "bert" ? modules([["pooler.dense", "bert.pooler.dense"]]) : [];
  return {
    tensors: [
      ...modules(
        [
          ["input_embedding", words],
          ["position_embedding", `${family}.embeddings.position_embeddings`],
          ["token_type_embedding", `${family}.embeddings.token_type_embeddings`],
        ],
        { bias: false },
      ),
      ...layers.flat(),
      ...modules([["encoder.output_layernorm", outNorm(numLayers - 1)]]),
      ...(heads[head] ?? pooler),
    ],
    ignored: [/^(lm_head|pooler|cls_projection)\./],
    ignoredHere: [/\.(position_ids|token_type_ids)$/, /^(cls\.predictions|lm_head)\.decoder\./],
  };
}
