import type { DType } from "../tensor/index.ts";

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
  /**
   * Kind after kind, each in the order of the model: what a rank reads of a block lies side by side, parts come about in
   * this order, and it is that of no layout, so that equal states have equal files.
   */
  readonly entries: readonly StateEntry[];
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
