import type { Module, TensorPlan } from "../compute/nn/index.ts";
import * as optim from "../compute/optim/index.ts";
import { callUser, describeValue, TroupeError } from "../errors/index.ts";
import type * as data from "../library/data/index.ts";
import { applyDelta, type Delta } from "../library/deltas/index.ts";
import { checkGiven } from "./check-given.ts";
import type { JobConfig, SettingsOf } from "./job-config.ts";
import { checkWeights, type LossWeights } from "./loss-weights.ts";
import type { Losses } from "./losses.ts";
import { LOSS, type Program, type Programs } from "./programs.ts";
import type { Rank, RankContext } from "./rank-context.ts";

/** Ranks a run's states by evaluations of the first of {@link TrainingPlan.evaluationSplits}, awaited before the next step. */
export interface BestRule {
  /** The score, or the name of a loss, to compare. Default: `loss`, the evaluation's loss. */
  readonly metric?: string;
  /** Whether lower or higher is better. Default: min. */
  readonly mode?: "min" | "max";
  /** A change of at most this much is no improvement. Default: 0. */
  readonly minDelta?: number;
  /** Evaluations without improvement after which the run ends. Default: it does not. */
  readonly patience?: number;
  /** Whether the best state is saved under the name `best`, where the run saves checkpoints. Default: true. */
  readonly keep?: boolean;
  /** Multiplies all learning rates by `factor` each time that `patience` evaluations bring no improvement. Default: never. */
  readonly reduceRate?: { readonly factor: number; readonly patience: number };
}

/** How a job is trained; the run's options may override it. */
export interface TrainingPlan {
  /** Number of optimizer steps; either this or {@link epochs}. */
  readonly steps?: number;
  /** Number of passes over the `train` split, instead of steps. */
  readonly epochs?: number;
  /** Samples in a step, over all ranks and micro-batches. */
  readonly batchSize: number;
  /** Micro-batches of each rank in a step. Default: 1. */
  readonly accumulation?: number;
  /**
   * Batch size ramp-up: from `start` to {@link batchSize} by `increment` over the first `samples` samples, in more micro-batches of
   * the same size. It depends on the samples consumed, so a resumed run continues it. Needs steps, not epochs.
   */
  readonly rampUp?: { readonly start: number; readonly increment: number; readonly samples: number };
  /** Maximum L2 norm of the gradient, or another rule. Default: no clipping. */
  readonly clipNorm?: number | optim.ClipRule;
  /** Steps between evaluations on held-out data; the last step is always evaluated. Default: never. */
  readonly evaluateEverySteps?: number;
  /** Maximum number of samples of each split that an evaluation reads. Default: all. */
  readonly evaluationSamples?: number;
  /** Splits to evaluate, one after the other. Default: `["validation"]`. */
  readonly evaluationSplits?: readonly string[];
  /** Compares the states after each evaluation: keeps the best one, ends the run early, reduces rates. Default: no comparison. */
  readonly best?: BestRule;
  /**
   * Whether a step's loss is one weighted mean over all its micro-batches, by the weights of `weigh`; if false, it is the plain
   * mean of the micro-batches' means. Without `weigh` both are the same. Default: true. The name is Megatron-LM's.
   */
  readonly calculatePerTokenLoss?: boolean;
  /** Hugging Face folder with the initial weights. Default: random initial weights. */
  readonly pretrained?: string;
  /**
   * Folder whose tokenizer, chat template, preprocessor and generation config every saved model carries; `tokenizer: false`
   * leaves the tokenizer's files out. Default: all those of {@link pretrained}.
   */
  readonly companions?: { readonly folder: string; readonly tokenizer?: boolean };
}

/** Arguments of a job's `sample`, besides the model. */
export interface SampleContext<Config extends JobConfig, F extends data.DatasetFacts = data.DatasetFacts> {
  readonly config: SettingsOf<Config>;
  readonly facts: F;
  readonly seed: number;
}

/**
 * A training job, written for one device. It runs inside every rank and does not depend on their number. A job's module
 * exports it as default.
 */
export interface Job<Config extends JobConfig = JobConfig, P extends Programs = Programs> {
  /** Every setting with its default. */
  readonly config: SettingsOf<Config>;
  /** Called once the data is open. */
  training(config: SettingsOf<Config>, facts: data.DatasetFacts): TrainingPlan;
  /** Opens the data; runs in the feeder's thread. `seed` shuffles the samples. */
  data(config: SettingsOf<Config>, context: { readonly seed: number }): data.Awaitable<data.Dataset>;
  /** Declares the model without allocating memory; the runtime shards and initializes its parameters. */
  model(config: SettingsOf<Config>, facts: data.DatasetFacts): Module;
  /**
   * A delta (LoRA and others) to train instead of the model's own parameters, which are then frozen and left out of
   * checkpoints. Default: none.
   */
  delta?(config: SettingsOf<Config>): Delta | undefined;
  /**
   * The loss: a mean over the batch, in nats, as a float32 scalar; or several by name, whose sum is minimized.
   * @param rank - for losses that ranks compute together; most do not need it
   */
  loss(model: Module, batch: data.TensorBatch, rank: Rank): Losses;
  /**
   * The weight of a batch: what its mean is taken over, such as the number of targets that count. A step's loss is then
   * Σ weight · loss / Σ weight over all its micro-batches, on any number of ranks. Runs in the feeder, and sees only the
   * batch. Default: all batches weigh the same.
   */
  weigh?(batch: data.Batch, config: SettingsOf<Config>): LossWeights;
  /**
   * The model's predictions for held-out samples, for the dataset's `score`; computed in evaluation, without gradients.
   * Dim 0 of every tensor is the batch's samples; the other dims are the same for all batches.
   */
  predict?(model: Module, batch: data.TensorBatch): data.Rows;
  /** One optimizer, or several that divide the parameters among them. */
  optimizer(
    parameters: optim.NamedShapes,
    config: SettingsOf<Config>,
  ): optim.OptimizerSpec | readonly optim.OptimizerSpec[];
  /** Called once for each optimizer. Default: the optimizer's own learning rate, constant. */
  schedule?(
    optimizer: optim.OptimizerSpec,
    config: SettingsOf<Config>,
    facts: data.DatasetFacts,
  ): optim.Schedule;
  /** How the model is split over tensor-parallel ranks. Default: the model's own plan. */
  tensorPlan?(config: SettingsOf<Config>): TensorPlan;
  /** Text to show when the run ends, for instance a sample that the model generates. A pure function of its arguments. */
  sample?(model: Module, context: SampleContext<Config>): string;
  /** Functions of the model that scripts call by name on a live model, besides the job's `loss`. */
  readonly programs?: Omit<P, typeof LOSS>;
  /** The job's own training loop. Default: each step is the {@link loss} of all its micro-batches. */
  loop?(rank: RankContext): void;
}

/** A {@link Job} with the types of its own data, batches and model, inferred from `data` and `model`. */
export interface JobDefinition<
  Config extends JobConfig,
  B extends data.Batch,
  M extends Module,
  F extends data.DatasetFacts,
  P extends Programs = Programs,
> extends Omit<
    Job<Config>,
    | "config"
    | "training"
    | "data"
    | "model"
    | "loss"
    | "weigh"
    | "predict"
    | "schedule"
    | "sample"
    | "programs"
    | "loop"
  > {
  readonly config: Config;
  training(config: SettingsOf<Config>, facts: F): TrainingPlan;
  data(config: SettingsOf<Config>, context: { readonly seed: number }): data.Awaitable<data.Dataset<B, F>>;
  model(config: SettingsOf<Config>, facts: F): M;
  loss(model: M, batch: data.TensorsOf<B>, rank: Rank): Losses;
  weigh?(batch: B, config: SettingsOf<Config>): LossWeights;
  predict?(model: M, batch: data.TensorsOf<B>): data.Rows;
  schedule?(optimizer: optim.OptimizerSpec, config: SettingsOf<Config>, facts: F): optim.Schedule;
  sample?(model: M, context: SampleContext<Config, F>): string;
  readonly programs?: P & Programs<NoInfer<M>>;
}

/**
 * Declares a job: the default export of the job's module. Write `data` and `model` before `loss`, `weigh`, `predict` and
 * `programs`, since TypeScript infers the types of batches and model from the top down.
 */
export function defineJob<
  Config extends JobConfig,
  B extends data.Batch,
  M extends Module,
  F extends data.DatasetFacts = data.DatasetFacts,
  P extends Programs<M> = Record<never, never>,
>(definition: JobDefinition<Config, B, M, F, P>): Job<Config, P & LossProgram<M, data.TensorsOf<B>>> {
  return definition as unknown as Job<Config, P & LossProgram<M, data.TensorsOf<B>>>;
}

/** A job's loss as a program. */
type LossProgram<M extends Module, B> = {
  readonly loss: (model: M, batch: B, args: undefined, rank: Rank) => Losses;
};

/** Declares a job's model, without memory, and applies its delta. @throws {TroupeError} `DELTA_TARGET` */
export function modelOf(job: Job, config: JobConfig, facts: data.DatasetFacts): Module {
  const model = job.model(config, facts);
  checkGiven(job.model, "model", () => checkModel(model));
  const delta = job.delta?.(config);
  return delta === undefined ? model : applyDelta(model, delta);
}

/** Refuses a value that is no module, has no parameters or hides some. @throws {TroupeError} `JOB_INVALID`, `MODULE_LAYOUT` */
function checkModel(model: Partial<Module> | undefined): void {
  if (typeof model?.namedParameters !== "function") throw notGiven("JOB_INVALID", "model", "a module", model);
  if (model.namedParameters().size > 0) return;
  throw new TroupeError("JOB_INVALID", {
    where: "model",
    expected: "model(…) of the job to give a module with parameters",
    got: "one without",
    hint: "make modules and parameters properties of a module, or put modules in a ModuleList",
  });
}

function notGiven(
  code: "JOB_INVALID" | "OPTIMIZER_OPTION",
  where: string,
  expected: string,
  given: unknown,
): TroupeError {
  const got = describeValue(given);
  const hints: Readonly<Record<string, string>> = {
    undefined: "is there a return?",
    "a promise": "leave async out",
  };
  return new TroupeError(code, {
    where,
    expected: `${where}(…) of the job to give ${expected}`,
    got,
    hint: hints[got],
  });
}

/** Returns the optimizers of the trained parameters. @throws {TroupeError} `OPTIMIZER_OPTION`, see `checkOptimizers` */
export function optimizersOf(job: Job, model: Module, config: JobConfig): readonly optim.OptimizerSpec[] {
  const parameters = new Map([...model.namedParameters()].filter(([, { role }]) => role !== "base"));
  const given = job.optimizer(parameters, config);
  return checkGiven(job.optimizer, "optimizer", () => {
    const specs: unknown = Array.isArray(given) ? given : [given];
    if (!isOptimizers(specs))
      throw notGiven("OPTIMIZER_OPTION", "optimizer", "an optimizer, or a list of them", given);
    return optim.checkOptimizers(specs, parameters);
  });
}

function isOptimizers(specs: unknown): specs is readonly optim.OptimizerSpec[] {
  const isOptimizer = (spec: Partial<optim.OptimizerSpec> | null | undefined) =>
    typeof spec?.kind === "string" && Array.isArray(spec.groups);
  return (specs as readonly (Partial<optim.OptimizerSpec> | null | undefined)[]).every(isOptimizer);
}

/** Returns the schedule of each optimizer. */
export function schedulesOf(
  job: Job,
  optimizers: readonly optim.OptimizerSpec[],
  config: JobConfig,
  facts: data.DatasetFacts,
): optim.Schedule[] {
  const { schedule } = job;
  if (schedule === undefined) return optimizers.map((optimizer) => new optim.Constant(optimizer));
  return optimizers.map((optimizer) => {
    const given: unknown = schedule.call(job, optimizer, config, facts);
    return checkGiven(schedule, "schedule", () => checkSchedule(given));
  });
}

/** Checks a job's schedule, and that it gives the first step's rate. @throws {TroupeError} `OPTIMIZER_OPTION` */
function checkSchedule(given: unknown): optim.Schedule {
  const schedule = given as optim.Schedule | null | undefined;
  if (typeof schedule?.lrAt !== "function")
    throw notGiven("OPTIMIZER_OPTION", "schedule", "a schedule, such as new Cosine(optimizer, { … })", given);
  optim.rateAt(schedule, 1);
  return schedule;
}

/** Returns the function that weighs a job's batches, if its losses are weighted. It throws `LOSS_WEIGHTS` for an invalid weight. */
export function weighingOf(
  job: Job,
  config: JobConfig,
  facts: data.DatasetFacts,
): ((batch: data.Batch) => LossWeights) | undefined {
  const { weigh } = job;
  // An invalid plan is reported by `checkTraining`; tolerate it here.
  const plan: Partial<TrainingPlan> | null | undefined = job.training(config, facts);
  return weigh === undefined || plan?.calculatePerTokenLoss === false
    ? undefined
    : (batch) => {
        const weights = weigh.call(job, batch, config);
        checkGiven(weigh, "weigh", () => checkWeights(weights));
        return weights;
      };
}

/** @returns a schedule's rates in the first steps, then at some steps of each doubling */
export function exampleRates(schedule: optim.Schedule): number[] {
  return callUser("lrAt(…) of the job's schedule", () => {
    const rates: number[] = [];
    for (let step = 1; step < 2 ** 20; step += Math.max(1, 2 ** (Math.floor(Math.log2(step)) - 8)))
      rates.push(schedule.lrAt(step));
    return rates;
  });
}

/** Returns the names of a job's programs. */
export function programNames({ programs = {} }: Job): readonly string[] {
  return [LOSS, ...Object.keys(programs)];
}

/** Runs a program of a job; the caller has checked its name. */
export function runProgram(
  job: Job,
  name: string,
  model: Module,
  batch: data.TensorBatch,
  args: unknown,
  rank: Rank,
): Losses | data.Rows {
  if (name === LOSS) return job.loss(model, batch, rank);
  const program = (job.programs as Programs | undefined)?.[name] as Program;
  return program(model as never, batch as never, args as never, rank);
}
