import { below, mask, sequence, type TensorPlan } from "../../../compute/nn/index.ts";
import { attentionPlan } from "../projected-attention.ts";
import { column, row } from "../uneven.ts";
import type { SpeechConfig } from "./config.ts";

/**
 * Tensor-parallel plan of a speech model: attention is split by heads, feed-forward halves by inner features; convolutions are not
 * split.
 */
export function speechPlan({
  hidden_size,
  num_attention_heads,
  intermediate_size,
  adapter_attn_dim = null,
  do_stable_layer_norm,
}: SpeechConfig): TensorPlan {
  return below("encoder", {
    dropout: sequence({ input: "replicated" }),
    ...below("layers.*", {
      ...below("attention", attentionPlan(hidden_size, num_attention_heads)),
      dropout: sequence(),
      layer_norm: sequence(),
      "feed_forward.intermediate_dense": column(),
      "feed_forward.intermediate_dropout": mask(2, intermediate_size), // [B, T, I]
      "feed_forward.output_dense": row(),
      "feed_forward.output_dropout": sequence(),
      final_layer_norm: sequence(),
      ...(adapter_attn_dim !== null &&
        do_stable_layer_norm &&
        below("adapter_layer", { norm: sequence(), linear_1: column(), linear_2: row() })),
    }),
    end: sequence({ output: "replicated" }),
  });
}
