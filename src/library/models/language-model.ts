import type { Module } from "../../compute/nn/index.ts";
import { Tensor } from "../../compute/tensor/index.ts";

/** What a language model is asked to predict. One of the two. */
export type TextTargets =
  | { readonly labels: Tensor; readonly targets?: never }
  | { readonly targets: Tensor; readonly labels?: never };

/** What stands where in the rows that a language model reads. */
export type TextPlaces = {
  /** [B, T], int64 or bool: 0 where a row is padded. All positions count where it is left out. */
  readonly attentionMask?: Tensor | undefined;
  /** [n + 1], int64, where the texts begin that share the one row, none of which sees another, and where the last ends. */
  readonly segments?: Tensor | undefined;
  /** [1, T], int64, of one row: where each token stands. Default: from the beginning of each text on. */
  readonly positionIds?: Tensor | undefined;
};

/** What is asked of a language model: to be scored against targets, or the logits of the last positions. */
export type TextRequest = Partial<TextTargets> & TextPlaces & { readonly logitsToKeep?: number };

/** What a language model reads, as one record; labels are the inputs themselves, −100 where nothing is asked. */
export type CausalBatch = TextPlaces & {
  readonly inputIds: Tensor;
  readonly labels?: Tensor | undefined;
};

/** A record as the arguments that stand for it. */
export function requestOf(
  input: Tensor | CausalBatch,
  request: TextRequest = {},
): { readonly inputIds: Tensor; readonly request: TextRequest } {
  if (input instanceof Tensor) return { inputIds: input, request };
  const { inputIds, labels, attentionMask, segments, positionIds } = input;
  return { inputIds, request: { attentionMask, segments, positionIds, ...(labels && { labels }) } };
}

/** The answer where targets are given. */
export type Loss = {
  /** float32 scalar, mean nats over the tokens that count. */
  readonly loss: Tensor;
};

/** The answer where none are given. */
export type Logits = {
  /** [B, T, V], of the model's compute dtype. */
  readonly logits: Tensor;
};

/** What text generation needs of a model. */
export interface LanguageModel extends Module {
  /** Longest context. */
  readonly maxPositions: number;
  /** @param options.attentionMask - [B, S], of all positions so far: false where a row is padded */
  forward(inputIds: Tensor, options?: { logitsToKeep?: number; attentionMask?: Tensor }): Logits;
}
