import { mask, sequence, type TensorPlan, vocabulary } from "../../../compute/nn/index.ts";
import type { EncoderShape } from "../bert/tensor-plan.ts";
import type { Reads } from "../heads/index.ts";
import { stackPlan } from "../stack-plan.ts";
import { column, row } from "../uneven.ts";

/** Tensor-parallel plan of Megatron's BERT: as BERT's, with its own places of norms. */
export function megatronBertPlan(
  { hidden_size, num_attention_heads, num_hidden_layers }: EncoderShape,
  reads: Reads,
): TensorPlan {
  const unit = hidden_size / num_attention_heads;
  const layer: TensorPlan = {
    "attention.ln": sequence(),
    "attention.self.query": column({ unit }),
    "attention.self.key": column({ unit }),
    "attention.self.value": column({ unit }),
    "attention.self.dropout": mask(1, num_attention_heads), // [B, H, T, T]
    "attention.output.dense": row({ unit }),
    "attention.output.dropout": sequence(),
    ln: sequence(),
    "intermediate.dense": column(),
    "output.dense": row(),
    "output.dropout": sequence(),
  };
  return {
    "embeddings.word_embeddings": vocabulary(),
    "embeddings.dropout": sequence({ input: "replicated" }),
    ...stackPlan("encoder.layer", layer, {
      numLayers: num_hidden_layers,
      reads,
      first: "attention.self.first",
      ofAll: ["attention.ln", "attention.self.key", "attention.self.value"],
    }),
    ...(reads === "all" && { "encoder.ln": sequence({ output: "replicated" }) }),
  };
}
