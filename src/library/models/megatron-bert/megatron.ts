import { checkMegatron, type MegatronForm, megatronLayer } from "../formats/megatron.ts";
import { modules, tensors, weights } from "../formats/weight-map.ts";

/**
 * Megatron-LM's BERT with both heads of its pre-training. Its norms come before each half of a layer, so Hugging Face's equal model is
 * `megatron-bert`, not `bert`.
 */
const form: MegatronForm = (given) => {
  const size = (field: string): number => {
    const value = given[field];
    checkMegatron(field, Number.isSafeInteger(value) && (value as number) >= 1, "a whole number ≥ 1", value);
    return value as number;
  };
  const [numLayers, numHeads] = [size("num_hidden_layers"), size("num_attention_heads")];
  const layers = Array.from({ length: numLayers }, (_, index) =>
    megatronLayer(index, `bert.encoder.layer.${index}`, {
      norms: ["attention.ln", "ln"],
      attention: ["query", "key", "value"].map((part) => `attention.self.${part}`),
      attentionOut: "attention.output.dense",
      feedForward: ["intermediate.dense", "output.dense"],
      transposed: false,
    }),
  );
  const [there, here] = ["language_model.embedding", "bert.embeddings"];
  return {
    numLayers,
    numHeads,
    vocabSize: size("vocab_size"),
    isPipelined: true,
    tensors: [
      ...weights(
        { [`${there}.word_embeddings`]: [`${here}.word_embeddings`] },
        { place: "first", splitDim: 0, perToken: true },
      ),
      ...weights(
        {
          [`${there}.position_embeddings`]: [`${here}.position_embeddings`],
          [`${there}.tokentype_embeddings`]: [`${here}.token_type_embeddings`],
        },
        { place: "first" },
      ),
      ...layers.flat(),
      ...modules(
        {
          "language_model.encoder.final_layernorm": ["bert.encoder.ln"],
          "language_model.pooler.dense": ["bert.pooler.dense"],
          "lm_head.dense": ["cls.predictions.transform.dense"],
          "lm_head.layernorm": ["cls.predictions.transform.LayerNorm"],
        },
        { place: "last" },
      ),
      ...tensors(
        { "lm_head.bias": ["cls.predictions.bias"] },
        { place: "last", splitDim: 0, perToken: true },
      ),
      ...modules({ binary_head: ["cls.seq_relationship"] }, { place: "last" }),
    ],
  };
};
export default form;
