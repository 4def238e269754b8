import type { SavedProgress } from "../../compute/optim/index.ts";
import type { Piece } from "../../compute/parallel/index.ts";
import type { TensorRef } from "../../compute/tensor/index.ts";
import type { RelayedBytes, RelayedRead } from "../../library/checkpoint/index.ts";
import type { ActorRef } from "../../runtime/index.ts";

/** One rank's share of one block's state, after `step` updates; the tensors are copies and the receiver's. */
export interface SavePart {
  readonly generation: number;
  readonly step: number;
  /** Whose share it is. */
  readonly rank: number;
  /** For how long copying it held training up: updates waited for it, or the event loop of who keeps it was busy with it. */
  readonly blockedMs: number;
  /** The master first, then what the optimizer keeps. */
  readonly state: readonly {
    readonly kind: string;
    readonly ref: TensorRef;
    readonly pieces: readonly Piece[];
  }[];
}

/** What the shards send of their state, and to whom: who saves all of it, or one rank's share. */
export type SnapshotProtocol = {
  part: { in: SavePart };
  /** How far the optimizer has come after `step` steps: a save is not whole without it. */
  progress: { in: { generation: number; step: number; progress: SavedProgress } };
};

/** What is asked of who has files of checkpoints. */
export type StoredFilesProtocol = {
  /** Reads a checkpoint's file for a host that may not have its folder. */
  readStored: { in: RelayedRead; out: RelayedBytes };
};

/** Who wants the state that follows a step, and of which blocks. Plain data. */
export interface SnapshotOrder {
  /** The step whose updates the state has seen. */
  readonly step: number;
  /** Generation of the rank group. */
  readonly generation: number;
  /** Whose share of the state it is. */
  readonly rank: number;
  readonly checkpointer: ActorRef<SnapshotProtocol>;
  readonly blocks: readonly number[];
}
