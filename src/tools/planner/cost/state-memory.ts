import * as parallel from "../../../compute/parallel/index.ts";
import type { ByteScheme } from "./byte-scheme.ts";

/** Bytes of a model's state on one rank, by the tags of the memory ledger. */
export interface StateBytes {
  readonly parameters: number;
  readonly master: number;
  readonly optimizer: number;
  /** Reduced gradients of all blocks, as they are when the update begins. */
  readonly gradients: number;
}

/**
 * Owner of gathered parameters. "process": from level 1 on, the ranks of a process read one copy, which counts for the
 * first of them. "device": every rank has a copy of its own, or at level 3 its slice.
 */
export type Residence = "process" | "device";

/**
 * The closed formulas for a rank's flat blocks between the last gradient and the first update of a step; equal to the
 * allocator's count, to the byte.
 * @param layouts - the rank's flat blocks, with padding
 * @param rank - of the world, where the groups that share the blocks are numbered
 */
export function stateBytes(
  layouts: readonly parallel.FlatBlock[],
  scheme: ByteScheme,
  residence: Residence,
  rank = 0,
): StateBytes {
  let [parameters, master, optimizer, gradients] = [0, 0, 0, 0];
  for (const layout of layouts) {
    const range = parallel.ownedRange(layout, rank);
    const owned = range.end - range.begin;
    parameters += scheme.compute * heldElements(residence, rank, layout);
    master += layout.base ? 0 : scheme.master * owned;
    if (!layout.trainable) continue;
    // A range with only padding has no optimizer state.
    optimizer += parallel.piecesIn(layout, range).length === 0 ? 0 : scheme.optimizer * owned;
    const gradient = layout.group.length === 1 ? scheme.ownGradient : scheme.reducedGradient;
    gradients += gradient * (parallel.splittingOf(layout.zero).gradients ? owned : layout.numel);
  }
  return { parameters, master, optimizer, gradients };
}

/**
 * Size of a save's copies of a rank's state, float32; of several equal copies of a block, one rank copies its own.
 * @param layouts - the rank's flat blocks, with padding
 */
export function snapshotBytes(layouts: readonly parallel.FlatBlock[], scheme: ByteScheme, rank = 0): number {
  let total = 0;
  for (const layout of layouts) {
    if (layout.base || !layout.counted || (layout.zero === 0 && parallel.memberOf(layout, rank) > 0))
      continue;
    const range = parallel.ownedRange(layout, rank);
    const isOptimized = layout.trainable && parallel.piecesIn(layout, range).length > 0;
    total += (range.end - range.begin) * (4 + (isOptimized ? scheme.optimizer : 0));
  }
  return total;
}

function heldElements(residence: Residence, rank: number, layout: parallel.FlatBlock): number {
  const { zero, numel, sliceNumel } = layout;
  if (residence === "device") return parallel.splittingOf(zero).parameters ? sliceNumel : numel;
  return zero === 0 || parallel.memberOf(layout, rank) === 0 ? numel : 0;
}
