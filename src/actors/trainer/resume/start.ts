import type { Module } from "../../../compute/nn/index.ts";
import type { SavedProgress } from "../../../compute/optim/index.ts";
import type { TroupeError } from "../../../errors/index.ts";
import type { TrainingPlan } from "../../../job/index.ts";
import * as checkpoints from "../../../library/checkpoint/index.ts";
import { type NamedState, type PretrainedWeights, pretrained } from "../../../library/models/index.ts";
import type { Beginning, InitialState } from "../../protocols/index.ts";
import { optionError } from "../option-error.ts";

/** A checkpoint that a run resumes from. */
export interface Resumed {
  readonly path: string;
  readonly state: checkpoints.TrainerState;
  /** Shape of each tensor of its model. */
  readonly weights: ReadonlyMap<string, readonly number[]>;
}

/** The start of a run. */
export interface Start {
  readonly seed: number;
  /** The checkpoint that the run resumes from, if any. */
  readonly resumed: Resumed | undefined;
  readonly initial: InitialState;
  /** Texts of the folder about the model, where the run begins with a folder's weights. */
  readonly texts: checkpoints.ModelTexts | undefined;
  /** Parameters that the folder lacks, and tensors of the folder that the model lacks. */
  readonly pretrained?: Pick<PretrainedWeights, "fresh" | "dropped">;
  /** The base of a delta, where the model has one. */
  readonly base?: DeltaBase | undefined;
  /** Newer checkpoints that could not be opened, and why. */
  readonly passedOver: readonly TroupeError[];
}

/** The base of a delta, which no checkpoint contains. */
export interface DeltaBase {
  readonly beginning: Beginning;
  /** Its source and digest, as in checkpoints. */
  readonly identity: checkpoints.JsonObject;
  /** Texts about the delta for the checkpoints' folders; undefined where the model has several. */
  readonly adapter: checkpoints.AdapterTexts | undefined;
}

/** Starts a new run: every parameter is drawn from its initializer. */
export function startFromSeed(seed: number): Start & { readonly initial: Beginning } {
  const initial = { kind: "seed", step: 0, seed } as const;
  return { seed, resumed: undefined, initial, texts: undefined, passedOver: [] };
}

/**
 * Resumes a run from a checkpoint.
 * @param path - folder of a checkpoint, or of a run's checkpoints: then its newest complete one
 * @param seed - the caller's seed, if any: it must be the checkpoint's
 * @param except - folders of checkpoints that are known to be damaged
 * @throws {TroupeError} errors of `openCheckpoint`; `OPTION` for another seed than the checkpoint's
 */
export async function startFromCheckpoint(
  path: string,
  seed: number | undefined,
  except: readonly string[] = [],
): Promise<Start> {
  await using checkpoint = await checkpoints.openCheckpoint(path, { except });
  const { state } = checkpoint;
  if (seed !== undefined && seed !== state.seed)
    throw optionError(
      "seed",
      `${state.seed}, that of the checkpoint ${checkpoint.path}`,
      seed,
      "leave --seed out",
    );
  return {
    seed: state.seed,
    resumed: {
      path: checkpoint.path,
      state,
      weights: new Map(checkpoint.weights.map((name) => [name, checkpoint.entry(name).shape])),
    },
    initial: stateOf(checkpoint),
    texts: textsOf(checkpoint, checkpoint.companions),
    passedOver: checkpoint.passedOver,
  };
}

/**
 * Starts a run from a Hugging Face folder's weights, with moments zero. A head that the folder lacks, or has for other
 * labels, is drawn.
 * @throws {TroupeError} `MODEL_WEIGHTS` where names or shapes outside the head differ from the model's; `OPTION` for a
 * model without Hugging Face names
 */
export async function startFromWeights(
  folder: string,
  model: Module,
  seed: number,
): Promise<Start & { readonly initial: Beginning }> {
  if (!("stateNaming" in model))
    throw optionError(
      "pretrained",
      "used with a model that has Hugging Face names",
      folder,
      "see stateNaming",
    );
  await using opened = await checkpoints.HuggingFaceFolder.open(folder);
  const named = new Map(opened.names.map((name) => [name, opened.entry(name)]));
  const { matched, fresh, dropped } = pretrained(model as NamedState, named);
  const entries = Object.fromEntries(matched.map(({ name, entry }) => [name, entry]));
  const initial = { kind: "weights", step: 0, folder, seed, entries } as const;
  return {
    seed,
    resumed: undefined,
    initial,
    pretrained: { fresh, dropped },
    texts: textsOf(opened, await opened.companions()),
    passedOver: [],
  };
}

/**
 * Reads the texts of a run's models; those that a companion model brings come from its folder.
 * @param texts - of the folder with the run's initial weights, if any
 * @throws {TroupeError} `HUGGING_FACE_FOLDER` where that folder has no config.json
 */
export async function textsBeside(
  texts: checkpoints.ModelTexts | undefined,
  { folder, tokenizer = true }: NonNullable<TrainingPlan["companions"]>,
): Promise<checkpoints.ModelTexts> {
  const found = await checkpoints.readTexts(folder);
  const { companions = {} } = found;
  return {
    ...(texts ?? found),
    companions: tokenizer ? companions : checkpoints.withoutTokenizer(companions),
  };
}

function textsOf(
  { config, generationConfig }: Pick<checkpoints.ModelTexts, "config" | "generationConfig">,
  companions: checkpoints.Companions,
): checkpoints.ModelTexts {
  return { config, generationConfig, companions };
}

function stateOf({ path, state }: checkpoints.Checkpoint): InitialState {
  const { step } = state;
  // Without a record, every step was an update.
  const progress = (state.optimizer ?? { numUpdates: step }) as unknown as SavedProgress;
  return { kind: "checkpoint", step, path, progress };
}
