import { sequence, type TensorPlan, vocabulary } from "../../../compute/nn/index.ts";
import type { Reads } from "../heads/index.ts";
import { encoderLayerPlan, stackPlan } from "../stack-plan.ts";

/** The fields of a configuration that the plan depends on. */
export interface EncoderShape {
  readonly hidden_size: number;
  readonly num_attention_heads: number;
  readonly num_hidden_layers: number;
}

/**
 * Tensor-parallel plan of an encoder like BERT: attention is split by heads, the feed-forward half by inner features, the embedding
 * by words; two reductions per layer in each direction. Heads get all positions that they read.
 * @see Shoeybi et al. 2019, "Megatron-LM", https://arxiv.org/abs/1909.08053
 */
export function encoderPlan(config: EncoderShape, reads: Reads): TensorPlan {
  const layer: TensorPlan = {
    ...encoderLayerPlan("attention.self", config),
    "attention.output.LayerNorm": sequence(),
    "output.LayerNorm": sequence(),
  };
  return {
    "embeddings.word_embeddings": vocabulary(),
    "embeddings.dropout": sequence({ input: "replicated" }),
    ...stackPlan(layer, {
      numLayers: config.num_hidden_layers,
      reads,
      first: "attention.self.first",
      ofAll: ["attention.self.key", "attention.self.value"],
    }),
    ...(reads === "all" && { "encoder.end": sequence({ output: "replicated" }) }),
  };
}
