import type { SavedProgress } from "../../compute/optim/index.ts";
import type { ActorRef } from "../../runtime/index.ts";
import type { CheckpointerProtocol } from "./checkpointer.ts";
import type { StoredFilesProtocol } from "./snapshot.ts";

/** Where a new run's parameters come from; moments are zero. Plain data. */
export type Beginning =
  /** Every parameter drawn from its initializer. */
  | { readonly kind: "seed"; readonly step: 0; readonly seed: number }
  /** Parameters from a folder as transformers or peft writes it, or drawn where it lacks them. */
  | {
      readonly kind: "weights";
      readonly step: 0;
      readonly folder: string;
      /** Of what is drawn. */
      readonly seed: number;
      /** The folder's name of each parameter that it has; the others are drawn from their initializers. */
      readonly entries: Readonly<Record<string, string>>;
    };

/** Where the base of a delta comes from, which no checkpoint holds. Default: from where all else comes. */
interface OnBase {
  readonly base?: Beginning | undefined;
}

/** Who reads checkpoints for others. Plain data, but for the ref. */
export interface StoredReader {
  /** The head's first: it has the manifest. Of files that others keep, whoever has it. */
  readonly readers: readonly ActorRef<StoredFilesProtocol>[];
  /** How long one answer may take. */
  readonly deadlineMs: number;
}

/** Where a run's state comes from. Plain data, but for the checkpointer's ref. */
export type InitialState = OnBase & (Beginning | Stored);

type Stored =
  /** Everything from a checkpoint, after `step` updates. */
  | {
      readonly kind: "checkpoint";
      readonly step: number;
      /** Its folder. */
      readonly path: string;
      readonly progress: SavedProgress;
      /** Who reads it for those whose host may not have it; all have it where left out. */
      readonly reader?: StoredReader | undefined;
    }
  /** Everything from the copy that a checkpointer holds in memory, after `step` updates. */
  | {
      readonly kind: "memory";
      readonly step: number;
      readonly progress: SavedProgress;
      readonly checkpointer: ActorRef<CheckpointerProtocol>;
      /** How long one answer of the checkpointer may take. */
      readonly deadlineMs: number;
    };

/** One way to begin. */
export type InitialStateOf<Kind extends InitialState["kind"]> = Extract<
  InitialState,
  { readonly kind: Kind }
>;
