import {
  type Checkpoint,
  HuggingFaceFolder,
  openCheckpoint,
  type TrainerState,
} from "../checkpoint/index.ts";
import type { DatasetFacts } from "../data/index.ts";
import { TroupeError } from "../errors.ts";
import { matchWeights, type NamedState } from "../models/index.ts";
import type { Module } from "../nn/index.ts";
import type { OptimizerProgress } from "../optim/index.ts";
import type { InitialState } from "../protocols/index.ts";
import { optionError } from "./option-error.ts";

/** Where a run begins. */
export interface Start {
  readonly seed: number;
  /** What the checkpoint says, where the run goes on from one. */
  readonly resumed: TrainerState | undefined;
  readonly initial: InitialState;
  /** Newer checkpoints that could not be opened, and why. */
  readonly passedOver: readonly TroupeError[];
}

/** A run from nothing: every parameter drawn from its initializer. */
export function startFromSeed(seed: number): Start {
  return { seed, resumed: undefined, initial: { kind: "seed", step: 0, seed }, passedOver: [] };
}

/**
 * A run that goes on where a checkpoint left it.
 * @param path - folder of a checkpoint, or of a run's checkpoints: its newest whole one
 * @param seed - what the caller asked for, if anything: the checkpoint's own seed is the only one that fits
 * @param except - folders of checkpoints that are known to be damaged
 * @throws {TroupeError} what `openCheckpoint` throws; `OPTION` for another seed than the checkpoint's
 */
export async function startFromCheckpoint(
  path: string,
  seed: number | undefined,
  except: readonly string[] = [],
): Promise<Start> {
  await using checkpoint = await openCheckpoint(path, { except });
  const { state } = checkpoint;
  if (seed !== undefined && seed !== state.seed) {
    throw optionError(
      "seed",
      `${state.seed}, that of the checkpoint ${checkpoint.path}`,
      seed,
      "leave --seed out",
    );
  }
  return {
    seed: state.seed,
    resumed: state,
    initial: stateOf(checkpoint),
    passedOver: checkpoint.passedOver,
  };
}

/**
 * Refuses to go on from a checkpoint as another run than the one it is of: a step would be another step with another
 * batch, and the tokens would mean other text. One that has made its last step already may be gone on from: there is nothing to do.
 * @throws {TroupeError} `RESUME_MISMATCH`
 */
export function checkResumed(
  resumed: TrainerState,
  { batchSize, steps }: { readonly batchSize: number; readonly steps: number },
  facts: DatasetFacts,
): void {
  const { tokenizer, step } = resumed;
  if (step > steps) {
    const hint = "nothing is left to train: give more steps, or an earlier checkpoint";
    throw mismatch(`a checkpoint of at most step ${steps}, the last of the run`, `step ${step}`, hint);
  }
  if (resumed.batchSize !== undefined && resumed.batchSize !== batchSize) {
    throw mismatch(`a batch of ${resumed.batchSize} samples, that of the checkpoint`, `${batchSize}`);
  }
  if (JSON.stringify(tokenizer) !== JSON.stringify(facts.tokenizer ?? null)) {
    throw mismatch("the tokenizer of the checkpoint", `another one, of ${facts.source}`);
  }
}

function mismatch(
  expected: string,
  got: string,
  hint = "resume with the settings and the data of the first run",
): TroupeError {
  return new TroupeError("RESUME_MISMATCH", {
    where: "resume",
    expected,
    got,
    hint,
  });
}

/**
 * A run from a Hugging Face folder's weights, moments zero.
 * @throws {TroupeError} `MODEL_WEIGHTS` where names or shapes differ from the model's; `OPTION` for a model without
 *   Hugging Face names
 */
export async function startFromWeights(folder: string, model: Module, seed: number): Promise<Start> {
  if (!("stateNaming" in model)) {
    throw optionError(
      "pretrained",
      "used with a model that has Hugging Face names",
      folder,
      "see stateNaming",
    );
  }
  await using opened = await HuggingFaceFolder.open(folder);
  const named = new Map(opened.names.map((name) => [name, opened.entry(name)]));
  const matches = matchWeights(model as NamedState, named);
  const entries = Object.fromEntries(matches.map(({ name, entry }) => [name, entry]));
  return { seed, resumed: undefined, initial: { kind: "weights", step: 0, folder, entries }, passedOver: [] };
}

function stateOf({ path, state }: Checkpoint): InitialState {
  const { step } = state;
  // Without a word on it every step was an update.
  const progress = (state.optimizer ?? { numUpdates: step }) as unknown as OptimizerProgress;
  return { kind: "checkpoint", step, path, progress };
}
