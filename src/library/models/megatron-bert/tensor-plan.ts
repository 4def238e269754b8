import { sequence, type TensorPlan, vocabulary } from "../../../compute/nn/index.ts";
import type { EncoderShape } from "../bert/tensor-plan.ts";
import type { Reads } from "../heads/index.ts";
import { encoderLayerPlan, stackPlan } from "../stack-plan.ts";

/** Tensor-parallel plan of Megatron's BERT: as BERT's, with its own places of norms. */
export function megatronBertPlan(config: EncoderShape, reads: Reads): TensorPlan {
  const layer: TensorPlan = {
    "attention.ln": sequence(),
    ...encoderLayerPlan("attention.self", config),
    ln: sequence(),
  };
  return {
    "embeddings.word_embeddings": vocabulary(),
    "embeddings.dropout": sequence({ input: "replicated" }),
    ...stackPlan(layer, {
      numLayers: config.num_hidden_layers,
      reads,
      first: "attention.self.first",
      ofAll: ["attention.ln", "attention.self.key", "attention.self.value"],
    }),
    ...(reads === "all" && { "encoder.ln": sequence({ output: "replicated" }) }),
  };
}
