import { type FlatBlock, SLICE_ALIGNMENT } from "../../../compute/parallel/index.ts";

/** @returns the name of the first block with a sum that is not finite, if any; for arguments see {@link sumOfSquares} */
export function firstNotFinite(
  counted: readonly FlatBlock[],
  bySlice: readonly Float64Array[],
  numKinds = 1,
): string | undefined {
  let begin = 0;
  for (const layout of counted) {
    const end = begin + (numKinds * layout.sliceNumel) / SLICE_ALIGNMENT;
    if (bySlice.some((sums) => !sums.subarray(begin, end).every(Number.isFinite))) return layout.name;
    begin = end;
  }
  return undefined;
}

/**
 * Adds up the sums of squares of the ranks that hold one part of the model, in the order of the parameters: block, then rank,
 * then chunk. The order does not depend on the number of ranks or the ZeRO level, so neither do the norm's bits.
 * @param counted - the flat blocks whose squares count, in order
 * @param bySlice - for each rank, the sums over its slice of every counted block, one block after the other; each block has
 * `numKinds` kinds of sums, one after the other
 * @param kind - the kind to add up
 * @returns square of the L2 norm of the summed (not yet averaged) gradient
 */
export function sumOfSquares(
  counted: readonly FlatBlock[],
  bySlice: readonly Float64Array[],
  kind = 0,
  numKinds = 1,
): number {
  let sum = 0;
  let begin = 0;
  for (const layout of counted) {
    const numChunks = layout.sliceNumel / SLICE_ALIGNMENT;
    const first = begin + kind * numChunks;
    for (const sums of bySlice)
      for (let chunk = first; chunk < first + numChunks; chunk++) sum += sums[chunk] as number;
    begin += numKinds * numChunks;
  }
  return sum;
}
