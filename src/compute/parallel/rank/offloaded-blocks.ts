import { TroupeError } from "../../../errors/index.ts";
import type { FlatBlock } from "../blocks/flat-block.ts";
import { type BlockPlan, ROOT_UNIT } from "../blocks/plan-blocks.ts";

/**
 * Chooses the trained blocks whose state is offloaded: the last ones, as many as come nearest to a share of all elements. The
 * last block is reduced first and needed last: between its gradient and its next use lie the backward and the forward of every
 * block before it. So this choice leaves the updates most time to hide in; the root, which is reduced last and needed first,
 * comes last of all.
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

/**
 * Chooses the flat blocks whose parameters can be paged out between uses: those of level 3, which are gathered and released
 * block by block. The root is used from the beginning of a pass to its end.
 * @returns indices, in forward order
 * @throws {TroupeError} `OPTION` if there are none
 */
export function pagedBlocks({ layouts, units }: BlockPlan): number[] {
  const ofRoot = units[ROOT_UNIT]?.flats ?? [];
  const chosen = layouts.flatMap(({ index, zero }) => (zero < 3 || ofRoot.includes(index) ? [] : index));
  if (chosen.length > 0) return chosen;
  throw new TroupeError("OPTION", {
    where: "offload.parameters",
    expected: "a model with blocks at ZeRO level 3, the items of its module lists",
    got: "none",
    hint: "leave it out",
    fields: { option: "offload.parameters" },
  });
}
