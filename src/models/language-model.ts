import type { Module } from "../nn/index.ts";
import type { Tensor } from "../tensor/index.ts";

/** What a language model is asked to predict. One of the two. */
export type TextTargets =
  | { readonly labels: Tensor; readonly targets?: never }
  | { readonly targets: Tensor; readonly labels?: never };

/** What is asked of a language model: to be scored against targets, or the logits of the last positions. */
export type TextRequest = Partial<TextTargets> & { readonly logitsToKeep?: number };

/** The answer where targets are given. */
export interface Loss {
  /** float32 scalar, mean nats over the tokens that count. */
  readonly loss: Tensor;
}

/** The answer where none are given. */
export interface Logits {
  /** [B, T, V], of the model's compute dtype. */
  readonly logits: Tensor;
}

/** What text generation needs of a model. */
export interface LanguageModel extends Module {
  /** Longest context. */
  readonly maxPositions: number;
  forward(inputIds: Tensor, options?: { logitsToKeep?: number }): Logits;
}
