import { mask, sequence, type TensorPlan } from "../../../compute/nn/index.ts";
import { stackPlan } from "../stack-plan.ts";
import { column, row } from "../uneven.ts";
import type { ViTConfig } from "./config.ts";

/** ViT's tensor-parallel plan: attention is split by heads, the feed-forward half by inner features; patches are not split. */
export function vitPlan({ hidden_size, num_attention_heads, num_hidden_layers }: ViTConfig): TensorPlan {
  const unit = hidden_size / num_attention_heads;
  const layer: TensorPlan = {
    layernorm_before: sequence(),
    "attention.attention.query": column({ unit }),
    "attention.attention.key": column({ unit }),
    "attention.attention.value": column({ unit }),
    "attention.attention.dropout": mask(1, num_attention_heads), // [B, H, T, T]
    "attention.output.dense": row({ unit }),
    "attention.output.dropout": sequence(),
    layernorm_after: sequence(),
    "intermediate.dense": column(),
    "output.dense": row(),
    "output.dropout": sequence(),
  };
  return {
    "embeddings.dropout": sequence({ input: "replicated" }),
    ...stackPlan("encoder.layer", layer, {
      numLayers: num_hidden_layers,
      reads: "first",
      first: "attention.attention.first",
      ofAll: ["layernorm_before", "attention.attention.key", "attention.attention.value"],
    }),
  };
}
