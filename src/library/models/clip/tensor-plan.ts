import { below, sequence, type TensorPlan, vocabulary } from "../../../compute/nn/index.ts";
import { attentionPlan } from "../projected-attention.ts";
import { column, row } from "../uneven.ts";
import type { ClipTowerConfig } from "./config.ts";

/** Tensor-parallel plan of a CLIP tower: attention is split by heads, the feed-forward half by inner features. */
export function clipPlan(
  { hidden_size, num_attention_heads }: ClipTowerConfig,
  tower: "text" | "vision",
): TensorPlan {
  return {
    ...(tower === "text"
      ? { "embeddings.token_embedding": vocabulary(), final_layer_norm: sequence({ output: "replicated" }) }
      : { post_layernorm: sequence({ output: "replicated" }) }),
    "encoder.start": sequence({ input: "replicated" }),
    ...below("encoder.layers.*", {
      ...below("self_attn", attentionPlan(hidden_size, num_attention_heads)),
      layer_norm1: sequence(),
      layer_norm2: sequence(),
      "mlp.fc1": column(),
      "mlp.fc2": row(),
    }),
  };
}
