import type { Piece } from "../../compute/parallel/index.ts";
import type { DType } from "../../compute/tensor/index.ts";

/** What one rank's shard sends of one block when its state is saved. Plain data. */
export interface PartPlan {
  /** What the copies take, padding included. */
  readonly sizeBytes: number;
  /** Every tensor of which it sends some, and what of it. */
  readonly entries: readonly SentEntry[];
}

/** A run of elements of what one rank holds of a tensor. Plain data. */
export interface HeldRun {
  /** Of what the rank holds. */
  readonly shape: readonly number[];
  /** What of the whole that is. */
  readonly split: Piece["parameter"]["split"];
  /** First element, within what the rank holds. */
  readonly begin: number;
  readonly numel: number;
}

/** What a save will consist of, known from the layout before anything is copied. Plain data. */
export interface SavePlan {
  readonly numParts: number;
  /** What all ranks together copy of their state: the most that a save keeps in memory beside it. */
  readonly stagedBytes: number;
  /**
   * Kind after kind, each in the order of the model: what a rank reads of a block lies side by side, parts come about in
   * this order, and it is that of no layout, so that equal states have equal files.
   */
  readonly entries: readonly StateEntry[];
}

/** What one writer of several takes and writes. Plain data. */
export interface SavedShare {
  readonly numParts: number;
  /** In the order of {@link SavePlan.entries}, and within a tensor in its own. */
  readonly entries: readonly SentEntry[];
}

/** One tensor of a run's state, whole: a parameter's own values or what an optimizer keeps of it. Plain data. */
export interface StateEntry {
  /** `MASTER`, or what the optimizer calls it. */
  readonly kind: string;
  readonly parameter: string;
  /** Of the whole, however the ranks split it. */
  readonly shape: readonly number[];
  /** float32 unless told otherwise: that of a constant. */
  readonly dtype?: DType;
}

/** What one rank sends of a tensor. Plain data. */
export interface SentEntry extends StateEntry {
  readonly held: HeldRun;
}
