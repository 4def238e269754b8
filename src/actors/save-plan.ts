import { type OptimizerSpec, updateRuleOf } from "../optim/index.ts";
import { type FlatBlock, savedLayouts } from "../parallel/index.ts";
import { sendsPart } from "./snapshot.ts";
import type { StateEntry } from "./state-image.ts";

/** What one rank's shard sends of one block when its state is saved. Plain data. */
export interface PartPlan {
  /** What the copies take, padding included. */
  readonly sizeBytes: number;
  /** Every tensor of which it sends some. */
  readonly entries: readonly StateEntry[];
}

/** What a save will consist of, known from the layout before anything is copied. Plain data. */
export interface SavePlan {
  readonly numParts: number;
  /** What all ranks together copy of their state: the most that a save keeps in memory beside it. */
  readonly stagedBytes: number;
  /** In the order in which their parts come: block after block, as a model runs them. */
  readonly entries: readonly StateEntry[];
}

/**
 * @param layouts - of what a rank and its shard hold
 * @returns what its shard sends when the state is saved, block after block
 */
export function partsOf(
  layouts: readonly FlatBlock[],
  rank: number,
  optimizers: readonly OptimizerSpec[],
): PartPlan[] {
  const rules = optimizers.map(updateRuleOf);
  return layouts
    .filter((layout) => sendsPart(layout, rank))
    .map((layout) => {
      const state = savedLayouts(layout, rank, rules);
      return {
        sizeBytes: 4 * state.reduce((sum, { numel }) => sum + numel, 0),
        entries: state.flatMap(({ kind, pieces }) =>
          pieces.map(({ parameter: { name, shape, split } }) => ({
            kind,
            parameter: name,
            shape: split?.logicalShape ?? shape,
          })),
        ),
      };
    });
}

/** @param ranks - the parts of each rank, in rank order */
export function planSave(ranks: readonly (readonly PartPlan[])[]): SavePlan {
  const entries = new Map<string, StateEntry>();
  const parts = ranks.flat();
  for (let place = 0; place < Math.max(0, ...ranks.map(({ length }) => length)); place++) {
    for (const entry of ranks.flatMap((ofRank) => ofRank[place]?.entries ?? []))
      entries.set(`${entry.kind} ${entry.parameter}`, entry);
  }
  return {
    numParts: parts.length,
    stagedBytes: parts.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
    entries: [...entries.values()],
  };
}
