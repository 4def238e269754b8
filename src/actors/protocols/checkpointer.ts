import type { SavedProgress } from "../../compute/optim/index.ts";
import type { Piece } from "../../compute/parallel/index.ts";
import type { TensorRef } from "../../compute/tensor/index.ts";
import type { KeepRule, ModelTexts, StateName, TrainerState } from "../../library/checkpoint/index.ts";
import type { SavePlan } from "./save-plan.ts";
import type { SpreadSave } from "./slice-writer.ts";
import type { SnapshotProtocol, StoredFilesProtocol } from "./snapshot.ts";

/** A save whose parts the shards are about to send. Plain data. */
export interface SaveOrder extends SavePlan {
  /** Generation of the rank group that sends them. */
  readonly generation: number;
  /** Texts of the folder about the model; its config.json is empty where the model has none. */
  readonly texts: ModelTexts;
  /** The trainer's state besides tensors; the optimizers' progress comes from the shards. */
  readonly state: TrainerState;
  /** Which writers share the work; left out, the checkpointer writes everything. */
  readonly spread?: SpreadSave | undefined;
  /** Whether it is written to the disk. */
  readonly write: boolean;
  /** A name for the state, given once it is durable. */
  readonly named?: StateName | undefined;
  /** Whether it stays in memory, in place of the state kept before. */
  readonly keep: boolean;
}

/** A finished save. */
export interface Saved {
  /** Path of the checkpoint; undefined where the state is in memory only. */
  readonly path: string | undefined;
  readonly sizeBytes: number;
  readonly durationMs: number;
  /** The longest time that copying held up one rank. */
  readonly blockedMs: number;
}

/** A complete state that is kept in memory. */
export interface KeptState {
  /** Number of updates made to it. */
  readonly step: number;
  readonly progress: SavedProgress;
  readonly sizeBytes: number;
}

/** The weights of a state, without what optimizers keep: complete tensors, or refs to them. */
export interface HeldWeights<Values = TensorRef> {
  /** Number of updates made to them. */
  readonly step: number;
  readonly progress: SavedProgress;
  /** By name; the values are float32 and flat. A constant of another dtype lies in them byte by byte. */
  readonly tensors: Readonly<Record<string, HeldTensor<Values>>>;
}

/** One complete tensor. */
export interface HeldTensor<Values = TensorRef> {
  readonly shape: readonly number[];
  readonly values: Values;
}

/** A request for parts of a kept state. Plain data. */
export interface RestoreRequest {
  /** Number of updates made to it. */
  readonly step: number;
  /** Any pieces, cut by any layout. */
  readonly wanted: readonly { readonly kind: string; readonly pieces: readonly Piece[] }[];
  /** Owner of the returned tensors until they are attached. */
  readonly owner: string;
}

/**
 * Saves one step at a time. `save` announces a save and the shards send their parts in any order while training goes
 * on; it is answered once the folder is durable under its final name, or the copy in memory is complete. A save that
 * fails leaves nothing behind, and the checkpointer ready for the next. Saves that an earlier generation of the rank
 * group left unfinished are given up; those it finished in memory stay.
 */
export type CheckpointerProtocol = SnapshotProtocol &
  StoredFilesProtocol & {
    /** A new generation of the rank group has begun: saves of earlier ones are refused from here on. */
    begin: { in: { generation: number } };
    save: { in: SaveOrder; out: Saved };
    /** Gives a durable state a name. */
    name: { in: { readonly step: number; readonly named: StateName }; out: Record<string, never> };
    /** Leaves a mark in the run's folder: a host that finds it there shares the folder. undefined without a folder. */
    mark: { in: Record<string, never>; out: { mark: string | undefined } };
    /** Keeps these weights in memory, in place of the state kept before. */
    hold: { in: HeldWeights; out: Record<string, never> };
    /** The state that is kept in memory, if any. */
    kept: { in: Record<string, never>; out: { state: KeptState | undefined } };
    /** Values of a kept state: for each wanted tensor its pieces, one flat tensor each; shared, read-only. */
    restore: { in: RestoreRequest; out: { values: readonly (readonly TensorRef[])[] } };
  };

/** Arguments of a new checkpointer. */
export interface CheckpointerInit {
  /** The run's checkpoint folder, which it locks, or a store such as `s3://bucket/prefix`; undefined: states stay in memory. */
  readonly directory: string | undefined;
  /** The token of the run's lock on the folder. */
  readonly hold: string | undefined;
  /** The weights that it has in memory from its start, as if they had been saved. */
  readonly held?: HeldWeights | undefined;
  /** Which checkpoints are kept once a new one is durable; left out: all. */
  readonly keep?: KeepRule | undefined;
}
