import { IGNORE_INDEX, isWriting } from "../../compute/nn/index.ts";
import { full, ops, Tensor } from "../../compute/tensor/index.ts";
import { inputError, type PlacedIds, placesIn } from "./token-ids.ts";

/** Rows to read, and their targets. */
export type Seq2SeqBatch = {
  /** [B, S], int64. */
  readonly inputIds: Tensor;
  /** [B, S], int64 or bool: 0 at padding. Default: no padding. */
  readonly attentionMask?: Tensor | undefined;
  /** [n + 1], int64, while text is written: start of each text packed into one row of `inputIds`, and end of the last. */
  readonly segments?: Tensor | undefined;
  /** [B, T], int64: targets; −100 is left out of the loss. */
  readonly labels?: Tensor | undefined;
  /** [B, T], int64: the decoder's input. Default: the labels, shifted by one. */
  readonly decoderInputIds?: Tensor | undefined;
  /** [B, T], int64 or bool: 0 at the decoder's padding. */
  readonly decoderAttentionMask?: Tensor | undefined;
  /** [1, T], int64: positions of tokens of several texts in one row of `decoderInputIds`. Default: from 0. */
  readonly decoderPositionIds?: Tensor | undefined;
};

/** The rows that an encoder reads, and which positions of them a decoder sees: bool [B, 1, 1, S]. */
export interface PlacedSource extends PlacedIds {
  readonly seen: Tensor | undefined;
}

/** @throws {TroupeError} `MODEL_INPUT` for a mask with segments, or segments that do not fit one row or come with no text under way */
export function sourceOf(where: string, { inputIds, attentionMask, segments }: Seq2SeqBatch): PlacedSource {
  // A decoder finds the text that it reads by its pages.
  if (segments !== undefined && !isWriting())
    throw inputError(where, "packed texts only while text is written", "segments", {}, "give each a row");
  const places = placesIn(where, inputIds, { attentionMask, segments });
  return { ...places, seen: places.mask instanceof Tensor ? places.mask : undefined };
}

/**
 * Makes a decoder's input from its labels: a start token, then all labels but the last. Ignored labels become padding.
 * @param labels - [B, T], int64
 * @returns [B, T], int64
 */
export function shiftRight(labels: Tensor, startToken: number, paddingToken: number): Tensor {
  const [batch = 0, length = 0] = labels.shape;
  const start = full([batch, Math.min(length, 1)], startToken, { dtype: "int64" });
  const shifted = ops.cat([start, labels.narrow(1, 0, Math.max(0, length - 1))], 1); // [B, T]
  return shifted.maskedFill(shifted.eq(IGNORE_INDEX), paddingToken);
}

/**
 * The input of a decoder: that of the batch, else its labels, shifted by one.
 * @param hint - what to give without labels
 * @throws {TroupeError} `MODEL_INPUT` for a batch with neither
 */
export function decoderInput(
  where: string,
  { labels, decoderInputIds }: Seq2SeqBatch,
  { start, padding, hint }: { readonly start: number; readonly padding: number; readonly hint: string },
): Tensor {
  if (decoderInputIds !== undefined) return decoderInputIds;
  if (labels !== undefined) return shiftRight(labels, start, padding);
  throw inputError(where, "labels or decoderInputIds", "neither", {}, hint);
}
