import type { Piece } from "../../compute/parallel/index.ts";
import type { DType } from "../../compute/tensor/index.ts";

/** One rank's part of one block in a save, as its shard sends it. Plain data. */
export interface PartPlan {
  /** Size of the copies, padding included. */
  readonly sizeBytes: number;
  /** The tensors that it sends, or sends some of. */
  readonly entries: readonly SentEntry[];
}

/** A contiguous range of elements in a rank's share of a tensor. Plain data. */
export interface HeldRun {
  /** Shape of the rank's share. */
  readonly shape: readonly number[];
  /** How the share is cut from the complete tensor. */
  readonly split: Piece["parameter"]["split"];
  /** First element, within the rank's share. */
  readonly begin: number;
  readonly numel: number;
}

/** The content of a save, known from the layout before anything is copied. Plain data. */
export interface SavePlan {
  readonly numParts: number;
  /** Bytes that all ranks copy: the most memory that a save takes besides the state. */
  readonly stagedBytes: number;
  /**
   * Ordered by kind, then as in the model: what a rank reads of a block is contiguous, and parts arrive in about this
   * order. It depends on no layout, so that equal states give equal files.
   */
  readonly entries: readonly StateEntry[];
}

/** The share of a save that one of several writers receives and writes. Plain data. */
export interface SavedShare {
  readonly numParts: number;
  /** In the order of {@link SavePlan.entries}; the entries of one tensor by position. */
  readonly entries: readonly SentEntry[];
}

/** One complete tensor of a run's state: a parameter's values, or a tensor of its optimizer state. Plain data. */
export interface StateEntry {
  /** `MASTER`, or the optimizer's name for it. */
  readonly kind: string;
  readonly parameter: string;
  /** Shape of the complete tensor, however the ranks split it. */
  readonly shape: readonly number[];
  /** Default: float32. Constants may have another. */
  readonly dtype?: DType;
}

/** A rank's part of a tensor, as it sends it. Plain data. */
export interface SentEntry extends StateEntry {
  readonly held: HeldRun;
}
