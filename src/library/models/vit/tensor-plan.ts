import { sequence, type TensorPlan } from "../../../compute/nn/index.ts";
import { encoderLayerPlan, stackPlan } from "../stack-plan.ts";
import type { ViTConfig } from "./config.ts";

/** ViT's tensor-parallel plan: attention is split by heads, the feed-forward half by inner features; patches are not split. */
export function vitPlan(config: ViTConfig): TensorPlan {
  const layer: TensorPlan = {
    layernorm_before: sequence(),
    ...encoderLayerPlan("attention.attention", config),
    layernorm_after: sequence(),
  };
  return {
    "embeddings.dropout": sequence({ input: "replicated" }),
    ...stackPlan(layer, {
      numLayers: config.num_hidden_layers,
      reads: "first",
      first: "attention.attention.first",
      ofAll: ["layernorm_before", "attention.attention.key", "attention.attention.value"],
    }),
  };
}
