import { below, column, mask, row, sequence, type TensorPlan } from "../../nn/index.ts";
import type { ViTConfig } from "./config.ts";

/** How tensor parallelism splits ViT: attention by heads, the feed-forward half by inner features; patches stay whole. */
export function vitPlan({ hidden_size, num_attention_heads }: ViTConfig): TensorPlan {
  const unit = hidden_size / num_attention_heads;
  return {
    "embeddings.dropout": sequence({ input: "whole" }),
    ...below("encoder.layer.*", {
      layernorm_before: sequence(),
      "attention.attention.query": column({ unit }),
      "attention.attention.key": column({ unit }),
      "attention.attention.value": column({ unit }),
      "attention.attention.dropout": mask(1), // [B, H, T, T]
      "attention.output.dense": row({ unit }),
      "attention.output.dropout": sequence(),
      layernorm_after: sequence(),
      "intermediate.dense": column(),
      "output.dense": row(),
      "output.dropout": sequence(),
    }),
    layernorm: sequence({ output: "whole" }),
  };
}
