import { type DType, itemBytes, numelOf, ops, type Tensor } from "../../tensor/index.ts";

/** What of a parameter says how its bytes are read. */
interface Stored {
  readonly shape: readonly number[];
  readonly dtype: DType;
}

const WORD_BYTES = 4;

/** @returns how many float32 elements have room for a constant of another dtype */
export function wordsOf({ shape, dtype }: Stored): number {
  return Math.ceil((numelOf(shape) * itemBytes(dtype)) / WORD_BYTES);
}

/**
 * Constants of other dtypes than float32 lie, byte by byte, in memory that is float32 by name: it is copied, sent and saved like
 * all state, and nobody computes with it.
 * @param words - {@link wordsOf} elements, contiguous, the first on a multiple of 8 bytes
 * @returns the constant's elements, flat: a view
 */
export function constantIn(words: Tensor, { shape, dtype }: Stored): Tensor {
  return ops.viewDtype(words, dtype).narrow(0, 0, numelOf(shape));
}
