import { type DType, itemBytes, numelOf, ops, type Tensor } from "../../tensor/index.ts";

/** The properties of a parameter that say how to read its bytes. */
interface Stored {
  readonly shape: readonly number[];
  readonly dtype: DType;
}

const WORD_BYTES = 4;

/** @returns the number of float32 elements that hold a constant of another dtype */
export function wordsOf({ shape, dtype }: Stored): number {
  return Math.ceil((numelOf(shape) * itemBytes(dtype)) / WORD_BYTES);
}

/**
 * Constants of dtypes other than float32 lie, byte by byte, in memory that is float32 by name: it is copied, sent and saved
 * like all state, and nothing computes with it.
 * @param words - {@link wordsOf} elements, contiguous, the first on a multiple of 8 bytes
 * @returns the constant's elements, flat: a view
 */
export function constantIn(words: Tensor, { shape, dtype }: Stored): Tensor {
  return ops.viewDtype(words, dtype).narrow(0, 0, numelOf(shape));
}
