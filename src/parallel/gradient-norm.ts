import type { FlatBlock } from "./flat-block.ts";
import { SLICE_ALIGNMENT } from "./flat-block.ts";

/**
 * Adds the ranks' sums of squares up in the order of the parameters: block, then rank, then chunk. The order does not
 * depend on the number of ranks or the ZeRO level, so neither do the norm's bits.
 * @param bySlice - for each rank, the sums over its slice of every block, one block after the other, in block order
 * @returns global L2 norm of the summed (not yet averaged) gradient
 */
export function globalNorm(layouts: readonly FlatBlock[], bySlice: readonly Float64Array[]): number {
  let sum = 0;
  let begin = 0;
  for (const layout of layouts) {
    const end = begin + layout.sliceNumel / SLICE_ALIGNMENT;
    for (const sums of bySlice) for (let chunk = begin; chunk < end; chunk++) sum += sums[chunk] as number;
    begin = end;
  }
  return Math.sqrt(sum);
}
