import type { Module } from "../../compute/nn/index.ts";
import { Tensor } from "../../compute/tensor/index.ts";

/** The targets of a language model, in one of two forms. */
export type TextTargets =
  | { readonly labels: Tensor; readonly targets?: never }
  | { readonly targets: Tensor; readonly labels?: never };

/** Masks and positions of the rows that a language model reads. */
export type TextPlaces = {
  /** [B, T], int64 or bool: 0 at padding. Default: no padding. */
  readonly attentionMask?: Tensor | undefined;
  /** [n + 1], int64, start of each packed text, which do not attend to each other, and end of the last. */
  readonly segments?: Tensor | undefined;
  /** [1, T], int64, positions of the tokens of one row. Default: from 0 in each text. */
  readonly positionIds?: Tensor | undefined;
};

/** Options of a language model's forward: targets for the loss, or the number of last positions with logits. */
export type TextRequest = Partial<TextTargets> & TextPlaces & { readonly logitsToKeep?: number };

/** Input of a language model in one record; labels are the inputs themselves, −100 where they are left out of the loss. */
export type CausalBatch = TextPlaces & {
  readonly inputIds: Tensor;
  readonly labels?: Tensor | undefined;
};

/** Splits a record into forward's arguments. */
export function requestOf(
  input: Tensor | CausalBatch,
  request: TextRequest = {},
): { readonly inputIds: Tensor; readonly request: TextRequest } {
  if (input instanceof Tensor) return { inputIds: input, request };
  const { inputIds, labels, attentionMask, segments, positionIds } = input;
  return { inputIds, request: { attentionMask, segments, positionIds, ...(labels && { labels }) } };
}

/** The output with targets. */
export type Loss = {
  /** float32 scalar, mean nats over the tokens in the loss. */
  readonly loss: Tensor;
};

/** The output without targets. */
export type Logits = {
  /** [B, T, V], of the model's compute dtype. */
  readonly logits: Tensor;
};

/** A model that can generate text. */
export interface LanguageModel extends Module {
  /** Longest context. */
  readonly maxPositions: number;
  /** Whether tokens of several texts can share a row, each with its position. Default: no. */
  readonly packs?: boolean;
  /**
   * @param options.attentionMask - [B, S], for all positions so far: false at padding
   * @param options.positionIds - int64 [1, T], for tokens of several texts in one row
   */
  forward(
    inputIds: Tensor,
    options?: { logitsToKeep?: number; attentionMask?: Tensor; positionIds?: Tensor },
  ): Logits;
}
