import { type MegatronModel, type MegatronTensor, megatronLayer, megatronTensor } from "../formats/megatron.ts";

/** What the names of a BERT depend on, by the field names of its config.json. */
export interface MegatronBertConfig {
  readonly num_hidden_layers: number;
  readonly num_attention_heads: number;
  readonly vocab_size: number;
}

/**
 * Megatron-LM's BERT with both heads of its pre-training. It normalises before each half of a layer, so Hugging Face keeps
 * it as `megatron-bert`, not as `bert`, whose weights mean something else.
 */
export function megatronBert(config: MegatronBertConfig): MegatronModel {
  const layers = Array.from({ length: config.num_hidden_layers }, (_, index) => {
    const layer = `bert.encoder.layer.${index}`;
    return megatronLayer(index, {
      norms: [`${layer}.attention.ln`, `${layer}.ln`],
      attention: ["query", "key", "value"].map((part) => `${layer}.attention.self.${part}`),
      attentionOut: `${layer}.attention.output.dense`,
      feedForward: [`${layer}.intermediate.dense`, `${layer}.output.dense`],
      transposed: false,
    });
  });
  return {
    numLayers: config.num_hidden_layers,
    numHeads: config.num_attention_heads,
    vocabSize: config.vocab_size,
    isPipelined: true,
    tensors: [...embeddings(), ...layers.flat(), ...heads()],
  };
}

function embeddings(): MegatronTensor[] {
  const [megatron, ours] = ["language_model.embedding", "bert.embeddings"];
  return [
    megatronTensor("first", `${megatron}.word_embeddings.weight`, `${ours}.word_embeddings.weight`, {
      splitDim: 0,
      perToken: true,
    }),
    megatronTensor("first", `${megatron}.position_embeddings.weight`, `${ours}.position_embeddings.weight`),
    megatronTensor(
      "first",
      `${megatron}.tokentype_embeddings.weight`,
      `${ours}.token_type_embeddings.weight`,
    ),
  ];
}

function heads(): MegatronTensor[] {
  const both = (megatron: string, ours: string) =>
    ["weight", "bias"].map((kind) => megatronTensor("last", `${megatron}.${kind}`, `${ours}.${kind}`));
  return [
    ...both("language_model.encoder.final_layernorm", "bert.encoder.ln"),
    ...both("language_model.pooler.dense", "bert.pooler.dense"),
    ...both("lm_head.dense", "cls.predictions.transform.dense"),
    ...both("lm_head.layernorm", "cls.predictions.transform.LayerNorm"),
    megatronTensor("last", "lm_head.bias", "cls.predictions.bias", { splitDim: 0, perToken: true }),
    ...both("binary_head", "cls.seq_relationship"),
  ];
}
