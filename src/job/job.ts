import type { Awaitable, Batch, Dataset, DatasetFacts, Rows, TensorBatch, TensorsOf } from "../data/index.ts";
import { applyDelta, type Delta } from "../deltas/index.ts";
import { TroupeError } from "../errors.ts";
import type { Module, TensorPlan } from "../nn/index.ts";
import {
  type ClipRule,
  Constant,
  checkOptimizers,
  type NamedShapes,
  type OptimizerSpec,
  type Schedule,
} from "../optim/index.ts";
import { checkGiven } from "./check-given.ts";
import type { JobConfig } from "./job-config.ts";
import type { LossWeights } from "./loss-weights.ts";
import type { Losses } from "./losses.ts";
import type { Rank, RankContext } from "./rank-context.ts";

/** How a job is trained, where the command line does not say otherwise. */
export interface TrainingPlan {
  /** Optimizer steps in all; or {@link epochs}. */
  readonly steps?: number;
  /** How often the samples of `train` are gone through, in place of steps: the last of them ends in the last step. */
  readonly epochs?: number;
  /** Samples in one step, over all ranks and micro-batches. */
  readonly batchSize: number;
  /** Micro-batches of one rank in one step; 1 unless told otherwise. */
  readonly accumulation?: number;
  /**
   * How the batch grows to {@link batchSize}: from `start` by `increment`, in equal parts of `samples`, as more micro-batches of the
   * same size. A function of the samples consumed, so that a run that goes on goes on with it. With steps, not epochs.
   */
  readonly rampUp?: { readonly start: number; readonly increment: number; readonly samples: number };
  /** Max L2 norm of the gradient, or another rule; no clipping unless told otherwise. */
  readonly clipNorm?: number | ClipRule;
  /** Steps between evaluations on held-out data, the last of them after the last step; never unless told otherwise. */
  readonly evaluateEverySteps?: number;
  /** Samples of each split that one evaluation reads at most; all unless told otherwise. */
  readonly evaluationSamples?: number;
  /** Splits that are evaluated, one after the other; `["validation"]` unless told otherwise. */
  readonly evaluationSplits?: readonly string[];
  /**
   * Whether a step's loss is a mean over what `weigh` says of all its micro-batches; else the mean of their means, each over
   * its own. True unless told otherwise, and without `weigh` the same. Megatron-LM's name for it.
   */
  readonly calculatePerTokenLoss?: boolean;
  /** Hugging Face folder whose weights the run begins with; drawn at random unless told otherwise. */
  readonly pretrained?: string;
}

/** What a job may look at while it writes a sample. */
export interface SampleContext<Config extends JobConfig, F extends DatasetFacts = DatasetFacts> {
  readonly config: Config;
  readonly facts: F;
  readonly seed: number;
}

/**
 * What is trained, written for one device: it runs inside every rank and knows nothing of ranks. A job's module has
 * one as its default export.
 */
export interface Job<Config extends JobConfig = JobConfig> {
  /** Every setting with its default. */
  readonly config: Config;
  /** Asked once the data is open. */
  training(config: Config, facts: DatasetFacts): TrainingPlan;
  /** Opens the data; runs in the feeder's thread. `seed` orders the samples. */
  data(config: Config, context: { readonly seed: number }): Awaitable<Dataset>;
  /** Declares the model, without memory; parameters are sharded and filled from outside. */
  model(config: Config, facts: DatasetFacts): Module;
  /**
   * What is tuned in place of the model's own parameters, which are its base then: frozen, and in no checkpoint. All of the
   * model's is trained unless told otherwise.
   */
  delta?(config: Config): Delta | undefined;
  /**
   * A mean over the batch, in nats, or several by name, of which the sum is made small; float32 scalars.
   * @param rank - for what ranks compute together; most losses need none of it
   */
  loss(model: Module, batch: TensorBatch, rank: Rank): Losses;
  /**
   * What each mean is over, such as the targets that count: a step's loss is then Σ weight · loss / Σ weight over all its
   * micro-batches, however many ranks these are dealt to. Runs beside the data, of the batch alone. All weigh alike unless
   * told otherwise.
   */
  weigh?(batch: Batch, config: Config): LossWeights;
  /**
   * What the model predicts of held-out samples, for the dataset's `score`: computed in evaluation, without gradients.
   * Every tensor has the batch's samples in dim 0, and of all batches the same shape behind it.
   */
  predict?(model: Module, batch: TensorBatch): Rows;
  /** One optimizer, or several that share the parameters out among them. */
  optimizer(parameters: NamedShapes, config: Config): OptimizerSpec | readonly OptimizerSpec[];
  /** Asked once for each optimizer; its own rate, constant, unless told otherwise. */
  schedule?(optimizer: OptimizerSpec, config: Config, facts: DatasetFacts): Schedule;
  /** How the model is split over tensor-parallel ranks, where it does not say so itself or should be split otherwise. */
  tensorPlan?(config: Config): TensorPlan;
  /** Something to look at when the run ends, for instance text the model writes. A pure function of its arguments. */
  sample?(model: Module, context: SampleContext<Config>): string;
  /** How a step is made, where the job says so itself; else each step is its {@link loss} of all micro-batches. */
  loop?(rank: RankContext): void;
}

/** A {@link Job} whose data, batches and model keep their own types from `data` and `model` to `loss`; `data` stands before what uses them. */
export interface JobDefinition<
  Config extends JobConfig,
  B extends Batch,
  M extends Module,
  F extends DatasetFacts,
> extends Omit<
    Job<Config>,
    "training" | "data" | "model" | "loss" | "weigh" | "predict" | "schedule" | "sample" | "loop"
  > {
  training(config: Config, facts: F): TrainingPlan;
  data(config: Config, context: { readonly seed: number }): Awaitable<Dataset<B, F>>;
  model(config: Config, facts: F): M;
  loss(model: M, batch: TensorsOf<B>, rank: Rank): Losses;
  weigh?(batch: B, config: Config): LossWeights;
  predict?(model: M, batch: TensorsOf<B>): Rows;
  schedule?(optimizer: OptimizerSpec, config: Config, facts: F): Schedule;
  sample?(model: M, context: SampleContext<Config, F>): string;
}

/**
 * Declares a job; the default export of the job's own module. Write `data` and `model` before `loss`, `weigh` and `predict`:
 * TypeScript infers from the top down what batches and the model are.
 */
export function defineJob<
  Config extends JobConfig,
  B extends Batch,
  M extends Module,
  F extends DatasetFacts = DatasetFacts,
>(definition: JobDefinition<Config, B, M, F>): Job<Config> {
  return definition as unknown as Job<Config>;
}

/** @returns a job's model, without memory, with its delta put to it. @throws {TroupeError} `DELTA_TARGET` */
export function modelOf(job: Job, config: JobConfig, facts: DatasetFacts): Module {
  const model = job.model(config, facts);
  checkGiven(job.model, "model", () => checkModel(model));
  const delta = job.delta?.(config);
  return delta === undefined ? model : applyDelta(model, delta);
}

/** @throws {TroupeError} `JOB_INVALID` for what is no module */
function checkModel(model: Partial<Module> | undefined): void {
  if (typeof model?.namedParameters !== "function") throw notGiven("JOB_INVALID", "model", "a module", model);
}

function notGiven(
  code: "JOB_INVALID" | "OPTIMIZER_OPTION",
  where: string,
  expected: string,
  given: unknown,
): TroupeError {
  const got = given === undefined || given === null ? String(given) : `a ${typeof given}`;
  return new TroupeError(code, {
    where,
    expected: `${where}(…) of the job to give ${expected}`,
    got,
    hint: given === undefined ? "is there a return?" : undefined,
  });
}

/**
 * @returns a job's optimizers for what is tuned of a model
 * @throws {TroupeError} `OPTIMIZER_OPTION` where they do not fit the parameters, see `checkOptimizers`
 */
export function optimizersOf(job: Job, model: Module, config: JobConfig): readonly OptimizerSpec[] {
  const parameters = new Map([...model.namedParameters()].filter(([, { role }]) => role !== "base"));
  const given = job.optimizer(parameters, config);
  return checkGiven(job.optimizer, "optimizer", () => {
    if (typeof given !== "object" || given === null)
      throw notGiven("OPTIMIZER_OPTION", "optimizer", "an optimizer, or a list of them", given);
    return checkOptimizers("kind" in given ? [given] : given, parameters);
  });
}

/** @returns the schedule of each optimizer */
export function schedulesOf(
  job: Job,
  optimizers: readonly OptimizerSpec[],
  config: JobConfig,
  facts: DatasetFacts,
): Schedule[] {
  return optimizers.map((optimizer) => job.schedule?.(optimizer, config, facts) ?? new Constant(optimizer));
}

/** @returns how a job weighs a batch, where its losses are weighed */
export function weighingOf(
  job: Job,
  config: JobConfig,
  facts: DatasetFacts,
): ((batch: Batch) => LossWeights) | undefined {
  const { weigh } = job;
  // What is no plan is told by name where it is checked, and that is not here.
  const plan: Partial<TrainingPlan> | null | undefined = job.training(config, facts);
  return weigh === undefined || plan?.calculatePerTokenLoss === false
    ? undefined
    : (batch) => weigh(batch, config);
}
