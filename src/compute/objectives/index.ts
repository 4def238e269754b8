/** Losses and advantages of post-training: pure functions of log-probabilities, logits and rewards. */

export * from "./advantages.ts";
export { type DistillationOptions, distillationLoss } from "./distillation.ts";
export * from "./log-probs.ts";
export * from "./policy.ts";
export * from "./preferences.ts";
