import type { CheckpointerProtocol } from "../../actors/index.ts";
import type { OptimizerProgress } from "../../optim/index.ts";
import type { BlockState } from "../../parallel/index.ts";
import type { ActorRef, Addressed } from "../../runtime/index.ts";
import { KeptValues } from "./kept-values.ts";
import { StoredValues } from "./stored-values.ts";

/** Where a run's state comes from. Plain data, but for the checkpointer's ref. */
export type InitialState =
  /** Every parameter drawn from its initializer. */
  | { readonly kind: "seed"; readonly step: 0; readonly seed: number }
  /** Parameters from a Hugging Face folder; moments zero. */
  | {
      readonly kind: "weights";
      readonly step: 0;
      readonly folder: string;
      /** The folder's name of each parameter. */
      readonly entries: Readonly<Record<string, string>>;
    }
  /** Everything from a checkpoint, after `step` updates. */
  | {
      readonly kind: "checkpoint";
      readonly step: number;
      /** Its folder. */
      readonly path: string;
      readonly progress: OptimizerProgress;
    }
  /** Everything from the copy that a checkpointer holds in memory, after `step` updates. */
  | {
      readonly kind: "memory";
      readonly step: number;
      readonly progress: OptimizerProgress;
      readonly checkpointer: ActorRef<CheckpointerProtocol>;
      /** How long one answer of the checkpointer may take. */
      readonly deadlineMs: number;
    };

/** One way to begin. */
export type InitialStateOf<Kind extends InitialState["kind"]> = Extract<InitialState, { kind: Kind }>;

/** The values of a run's beginning, at hand block by block. */
export interface InitialValues extends AsyncDisposable {
  /** Fills a block's state, which is bound, and publishes its parameters, reading only what is owned. */
  fill(state: BlockState): Promise<void>;
}

/**
 * @param reader - the actor that fills blocks
 * @throws what opening a file throws
 */
export async function openValues(initial: InitialState, reader: Addressed): Promise<InitialValues> {
  if (initial.kind === "seed") return new DrawnValues(initial.seed);
  if (initial.kind === "memory") return new KeptValues(initial, reader);
  return StoredValues.open(initial);
}

class DrawnValues implements InitialValues {
  readonly #seed: number;

  constructor(seed: number) {
    this.#seed = seed;
  }

  async fill(state: BlockState): Promise<void> {
    state.initialize(this.#seed);
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}
