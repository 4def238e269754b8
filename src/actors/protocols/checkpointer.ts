import type { SavedProgress } from "../../compute/optim/index.ts";
import type { Piece } from "../../compute/parallel/index.ts";
import type { TensorRef } from "../../compute/tensor/index.ts";
import type { KeepRule, ModelTexts, StateName, TrainerState } from "../../library/checkpoint/index.ts";
import type { SavePlan } from "./save-plan.ts";
import type { SpreadSave } from "./slice-writer.ts";
import type { SnapshotProtocol, StoredFilesProtocol } from "./snapshot.ts";

/** A save that is about to be fed. Plain data. */
export interface SaveOrder extends SavePlan {
  /** Generation of the rank group that feeds it. */
  readonly generation: number;
  /** What the folder says of the model; its config.json is empty where the model has none. */
  readonly texts: ModelTexts;
  /** What a run needs to go on, beside tensors; how far the optimizer has come, the shards tell. */
  readonly state: TrainerState;
  /** How several write it; the checkpointer writes all where left out. */
  readonly spread?: SpreadSave | undefined;
  /** Whether it goes to the disk. */
  readonly write: boolean;
  /** Its name, given once it is durable. */
  readonly named?: StateName | undefined;
  /** Whether it stays in memory, in place of the one before. */
  readonly keep: boolean;
}

/** A save that is done. */
export interface Saved {
  /** Where on the disk; undefined where it is in memory only. */
  readonly path: string | undefined;
  readonly sizeBytes: number;
  readonly durationMs: number;
  /** For how long copying held that rank up that was held up most. */
  readonly blockedMs: number;
}

/** A whole state that is kept in memory. */
export interface KeptState {
  /** Updates it has seen. */
  readonly step: number;
  readonly progress: SavedProgress;
  readonly sizeBytes: number;
}

/** What an actor wants of a kept state. Plain data. */
export interface RestoreRequest {
  /** Updates it has seen. */
  readonly step: number;
  /** Any pieces, of any layout. */
  readonly wanted: readonly { readonly kind: string; readonly pieces: readonly Piece[] }[];
  /** Whose the tensors are until they are attached. */
  readonly owner: string;
}

/**
 * Saves one step at a time: `save` announces it, the shards send their parts in any order while training goes on, and
 * `save` is answered when the folder is durable under its final name, or the copy in memory whole. A save that fails
 * leaves nothing behind, and the checkpointer ready for the next. What an earlier generation of the rank group began and could
 * not finish is given up; what it finished in memory stays.
 */
export type CheckpointerProtocol = SnapshotProtocol &
  StoredFilesProtocol & {
    /** A new generation of the rank group has begun: saves of earlier ones are refused from here on. */
    begin: { in: { generation: number } };
    save: { in: SaveOrder; out: Saved };
    /** Gives a state that is durable a name. */
    name: { in: { readonly step: number; readonly named: StateName }; out: Record<string, never> };
    /** Leaves a mark in the run's folder; who finds the same there shares it. undefined where nothing goes to a folder. */
    mark: { in: Record<string, never>; out: { mark: string | undefined } };
    /** The state that is kept in memory, if any. */
    kept: { in: Record<string, never>; out: { state: KeptState | undefined } };
    /** Values of a kept state, for each wanted tensor piece by piece, flat: shared, to be read only. */
    restore: { in: RestoreRequest; out: { values: readonly (readonly TensorRef[])[] } };
  };

/** What a checkpointer is born with. */
export interface CheckpointerInit {
  /** Folder of the run's checkpoints, which the run has made and locked, or a store such as `s3://bucket/prefix`; undefined: all is kept in memory only. */
  readonly directory: string | undefined;
  /** The word of the run's lock on it. */
  readonly hold: string | undefined;
  /** Which of them are kept once a new one is durable; all where left out. */
  readonly keep?: KeepRule | undefined;
}
