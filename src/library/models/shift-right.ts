import { IGNORE_INDEX } from "../../compute/nn/index.ts";
import { full, ops, type Tensor } from "../../compute/tensor/index.ts";
import { inputError } from "./token-ids.ts";

/** Rows to read, and their targets. */
export type Seq2SeqBatch = {
  /** [B, S], int64. */
  readonly inputIds: Tensor;
  /** [B, S], int64 or bool: 0 at padding. Default: no padding. */
  readonly attentionMask?: Tensor | undefined;
  /** [B, T], int64: targets; −100 is left out of the loss. */
  readonly labels?: Tensor | undefined;
  /** [B, T], int64: the decoder's input. Default: the labels, shifted by one. */
  readonly decoderInputIds?: Tensor | undefined;
  /** [B, T], int64 or bool: 0 at the decoder's padding. */
  readonly decoderAttentionMask?: Tensor | undefined;
};

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
