import type { FlatBlock } from "./flat-block.ts";

/**
 * Chooses the trained blocks whose state is kept elsewhere: the last ones, as many as come nearest to a share of all elements.
 *
 * The last block is reduced first and needed last: between its gradient and its next use lie the backward and the forward
 * of every block before it. So of all choices of that size this one leaves the updates most time to hide in; the root,
 * which is reduced last and needed first, comes last of all.
 * @param ratio - from 0 to 1
 * @returns indices, in forward order
 */
export function offloadedBlocks(layouts: readonly FlatBlock[], ratio: number): number[] {
  const trained = layouts.filter((layout) => layout.trainable);
  const wanted = ratio * trained.reduce((sum, layout) => sum + layout.numel, 0);
  const chosen: number[] = [];
  let taken = 0;
  for (const { index, numel } of trained.toReversed()) {
    if (Math.abs(taken + numel - wanted) > Math.abs(taken - wanted)) break;
    taken += numel;
    chosen.unshift(index);
  }
  return chosen;
}
