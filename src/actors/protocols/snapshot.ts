import type { SavedProgress } from "../../compute/optim/index.ts";
import type { Piece } from "../../compute/parallel/index.ts";
import type { TensorRef } from "../../compute/tensor/index.ts";
import type { RelayedBytes, RelayedRead } from "../../library/checkpoint/index.ts";
import type { ActorRef } from "../../runtime/index.ts";

/** One rank's share of one block's state, after `step` updates; the tensors are copies and belong to the receiver. */
export interface SavePart {
  readonly generation: number;
  readonly step: number;
  /** The rank whose share it is. */
  readonly rank: number;
  /** How long copying held up training: updates waited for it, or the sender's event loop was busy with it. */
  readonly blockedMs: number;
  /** The master first, then the optimizer's tensors. */
  readonly state: readonly {
    readonly kind: string;
    readonly ref: TensorRef;
    readonly pieces: readonly Piece[];
  }[];
}

/** State from the shards, to the actor that saves all of it or one rank's share. */
export type SnapshotProtocol = {
  part: { in: SavePart };
  /** The optimizers' progress after `step` steps: a save is incomplete without it. */
  progress: { in: { generation: number; step: number; progress: SavedProgress } };
};

/** Requests to an actor that has files of checkpoints. */
export type StoredFilesProtocol = {
  /** Reads a checkpoint's file for a host that may not have its folder. */
  readStored: { in: RelayedRead; out: RelayedBytes };
};

/** A request for the state after a step, of some blocks. Plain data. */
export interface SnapshotOrder {
  /** Number of updates made to the state. */
  readonly step: number;
  /** Generation of the rank group. */
  readonly generation: number;
  /** The rank whose share of the state it is. */
  readonly rank: number;
  readonly checkpointer: ActorRef<SnapshotProtocol>;
  readonly blocks: readonly number[];
}
