import type { SizeNames } from "./family.ts";

/** Names of sizes and rates in an encoder's config.json, the default of families. */
export const encoderSizes = {
  numLayers: ["num_hidden_layers"],
  hiddenSize: ["hidden_size"],
  numAttentionHeads: ["num_attention_heads"],
  maxPositionEmbeddings: ["max_position_embeddings"],
  ffnHiddenSize: ["intermediate_size"],
  attentionDropout: ["attention_probs_dropout_prob"],
  hiddenDropout: ["hidden_dropout_prob"],
  layernormEpsilon: ["layer_norm_eps"],
  initMethodStd: ["initializer_range"],
} as const satisfies SizeNames;
