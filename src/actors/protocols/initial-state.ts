import type { SavedProgress } from "../../compute/optim/index.ts";
import type { ActorRef } from "../../runtime/index.ts";
import type { CheckpointerProtocol } from "./checkpointer.ts";
import type { StoredFilesProtocol } from "./snapshot.ts";

/** Where a new run's parameters come from; the optimizer's moments are zero. Plain data. */
export type Beginning =
  /** Every parameter is drawn from its initializer. */
  | { readonly kind: "seed"; readonly step: 0; readonly seed: number }
  /** Parameters come from a folder in the format of transformers or peft; those that it lacks are drawn. */
  | {
      readonly kind: "weights";
      /** 0, except for weights that a script loads into a live model. */
      readonly step: number;
      readonly folder: string;
      /** For the parameters that are drawn. */
      readonly seed: number;
      /** The folder's name for each parameter that it has; the others are drawn from their initializers. */
      readonly entries: Readonly<Record<string, string>>;
    };

/** The use of a state. */
interface InUse {
  /** Where the base of a delta comes from, since a delta's checkpoint lacks it. Default: the same source as the rest. */
  readonly base?: Beginning | undefined;
  /** Whether no parameter is trained, whatever the job declares: optimizers keep no state, and gradients have no memory. */
  readonly isFrozen?: boolean;
}

/** Actors that read checkpoints for hosts without the folder. Plain data, but for the refs. */
export interface StoredReader {
  /** The head's first, since it has the manifest; then those of hosts that hold files of their own. */
  readonly readers: readonly ActorRef<StoredFilesProtocol>[];
  /** The longest wait for one answer. */
  readonly deadlineMs: number;
}

/** Where a run's state comes from. Plain data, but for the checkpointer's ref. */
export type InitialState = InUse & (Beginning | Stored);

type Stored =
  /** Everything from a checkpoint, after `step` updates. */
  | {
      readonly kind: "checkpoint";
      readonly step: number;
      /** Its folder. */
      readonly path: string;
      readonly progress: SavedProgress;
      /** Reads it for hosts without the folder; left out where every host has it. */
      readonly reader?: StoredReader | undefined;
    }
  /** Everything from the state that a checkpointer keeps in memory, after `step` updates. */
  | {
      readonly kind: "memory";
      readonly step: number;
      readonly progress: SavedProgress;
      readonly checkpointer: ActorRef<CheckpointerProtocol>;
      /** The longest wait for one answer of the checkpointer. */
      readonly deadlineMs: number;
    };

/** The initial state of one kind. */
export type InitialStateOf<Kind extends InitialState["kind"]> = Extract<
  InitialState,
  { readonly kind: Kind }
>;

/** The progress of the optimizers that begin with a state; undefined if they have made no update, or keep nothing of it. */
export function progressIn(initial: InitialState): SavedProgress | undefined {
  return "progress" in initial && initial.isFrozen !== true ? initial.progress : undefined;
}
