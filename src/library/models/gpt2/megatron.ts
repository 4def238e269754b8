import type { GPT2Config } from "./config.ts";
import { type MegatronModel, megatronLayer, megatronTensor } from "../formats/megatron.ts";

/** A GPT-2 as Megatron-LM names it. Its matrices lie as [out, in] there, as [in, out] with Hugging Face. */
export function megatronGpt(config: Pick<GPT2Config, "n_layer" | "n_head" | "vocab_size">): MegatronModel {
  const layers = Array.from({ length: config.n_layer }, (_, index) => {
    const layer = `transformer.h.${index}`;
    return megatronLayer(index, {
      norms: [`${layer}.ln_1`, `${layer}.ln_2`],
      attention: [`${layer}.attn.c_attn`],
      attentionOut: `${layer}.attn.c_proj`,
      feedForward: [`${layer}.mlp.c_fc`, `${layer}.mlp.c_proj`],
      transposed: true,
    });
  });
  const embedding = "language_model.embedding";
  return {
    numLayers: config.n_layer,
    numHeads: config.n_head,
    vocabSize: config.vocab_size,
    isPipelined: true,
    tensors: [
      megatronTensor("first", `${embedding}.word_embeddings.weight`, "transformer.wte.weight", {
        splitDim: 0,
        perToken: true,
      }),
      megatronTensor("first", `${embedding}.position_embeddings.weight`, "transformer.wpe.weight"),
      ...layers.flat(),
      megatronTensor("last", "language_model.encoder.final_layernorm.weight", "transformer.ln_f.weight"),
      megatronTensor("last", "language_model.encoder.final_layernorm.bias", "transformer.ln_f.bias"),
    ],
  };
}
