import { type FlatBlock, SLICE_ALIGNMENT } from "../../../compute/parallel/index.ts";
import { hold, ops, type Tensor } from "../../../compute/tensor/index.ts";

/**
 * Adds up the sums of squares of the ranks that hold one part of the model, in the order of the parameters: block, then rank,
 * then chunk, in groups. The order does not depend on the number of ranks or the ZeRO level, nor do the norm's bits.
 * @param counted - the flat blocks whose squares count, in order
 * @param shares - a row a rank, float64: the sums over its slice of every counted block, one block after the other; each block
 * has `numKinds` kinds of sums, one after the other; more may follow
 * @returns squares of the L2 norms of the summed (not yet averaged) gradient, one a kind, where `shares` lie; the caller's
 */
export function sumsOfSquares(
  counted: readonly FlatBlock[],
  shares: Tensor,
  numRanks: number,
  numKinds = 1,
): Tensor {
  const numChunks = counted.map(({ sliceNumel }) => sliceNumel / SLICE_ALIGNMENT);
  return hold(() => ops.troupe.sumSquareSums(shares, numRanks, numChunks, numKinds));
}

/** @returns the first block with a sum that is not finite, if any; for arguments see {@link sumsOfSquares} */
export function firstNotFinite(
  counted: readonly FlatBlock[],
  bySlice: readonly Float64Array[],
  numKinds: number,
): string | undefined {
  let begin = 0;
  for (const layout of counted) {
    const end = begin + (numKinds * layout.sliceNumel) / SLICE_ALIGNMENT;
    if (bySlice.some((sums) => !sums.subarray(begin, end).every(Number.isFinite))) return layout.name;
    begin = end;
  }
  return undefined;
}
