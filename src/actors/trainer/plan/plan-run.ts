import type { GroupPlan } from "../../../compute/collectives/index.ts";
import {
  type ActivationName,
  Affine,
  cutBlocks,
  geluForm,
  isPrefixed,
  MixtureOfExperts,
  type Module,
} from "../../../compute/nn/index.ts";
import * as optim from "../../../compute/optim/index.ts";
import * as parallel from "../../../compute/parallel/index.ts";
import { TroupeError } from "../../../errors/index.ts";
import {
  type BestRule,
  type Job,
  type JobConfig,
  modelOf,
  optimizersOf,
  requireLoss,
  schedulesOf,
  type TrainingPlan,
} from "../../../job/index.ts";
import type { CheckpointSettings, RuntimeSettings } from "../../../job/options/index.ts";
import type { TrainerState } from "../../../library/checkpoint/index.ts";
import { checkVocabulary, type RampUp, type SamplerState } from "../../../library/data/index.ts";
import { requireSequenceEntry, tensorPlanOf } from "../../engine/rank/index.ts";
import type { BatchRequest, OpenedData, RankPlan, RunSchedule, SavingRules } from "../../protocols/index.ts";
import { optionError } from "../option-error.ts";
import { plannedSteps, recipeIn } from "../resume/recipe.ts";
import type { Resumed, Start } from "../resume/start.ts";

/** The plan of a run, complete before any of its actors is spawned. Plain data. */
export interface RunPlan {
  readonly schedule: RunSchedule;
  readonly ranks: RankPlan;
}

/** How a job's batch is divided among ranks and micro-batches. */
export interface BatchPlan {
  readonly training: TrainingPlan;
  readonly steps: number;
  /** Whether an option sets the number of steps, in this run or in the run that it resumes. */
  readonly isStepsAsked: boolean;
  readonly batchSize: number;
  readonly accumulation: number;
  /** How the batch grows to that size; undefined for a constant size. */
  readonly rampUp: RampUp | undefined;
  /** Samples in one micro-batch of one replica. */
  readonly microBatchSize: number;
}

/**
 * Divides the batch once the data is open. {@link dryRun} checks later whether the model's layout allows that division.
 * @throws {TroupeError} `OPTION`; `DATA_SPLIT` where the data lacks a split that the plan reads; `JOB_INVALID` for a
 * loop without a loss that is evaluated or split over stages
 */
export function planBatch(
  job: Job,
  training: TrainingPlan,
  data: OpenedData,
  settings: RuntimeSettings,
  resumed: Resumed | undefined,
): BatchPlan {
  if (training.evaluateEverySteps !== undefined || settings.layout.mesh.pp > 1) requireLoss(job);
  const accumulation =
    settings.training.accumulation ?? integer("accumulation", training.accumulation ?? 1, 1);
  const batchSize = integer("batchSize", training.batchSize, 1);
  const asked = settings.training.steps ?? stepsBefore(training, resumed);
  const steps = asked ?? stepsOf(training, batchSize, data, resumed);
  const microBatchSize = batchSize / (settings.layout.mesh.dp * accumulation);
  const isStepsAsked = asked !== undefined;
  const rampUp = training.rampUp && { ...training.rampUp, end: batchSize };
  if (rampUp !== undefined) checkRamp(rampUp, training, settings, microBatchSize);
  return { training, steps, isStepsAsked, batchSize, accumulation, rampUp, microBatchSize };
}

/** A batch must grow by complete micro-batches of all replicas (and of all stages, with interleaved chunks). */
function checkRamp(
  { start, end, increment }: RampUp,
  { epochs }: TrainingPlan,
  { layout: { mesh, schedule } }: RuntimeSettings,
  microBatchSize: number,
): void {
  const unit = microBatchSize * mesh.dp * (schedule === "interleaved" ? mesh.pp : 1);
  const grows = start <= end && (end - start) % increment === 0;
  if (epochs !== undefined) throw optionError("rampUp", "with steps", "epochs");
  if (!grows) throw optionError("rampUp", `to reach ${end} in equal increments`, `${start} by ${increment}`);
  if (Number.isSafeInteger(unit) && (start % unit !== 0 || increment % unit !== 0))
    throw optionError(
      "rampUp",
      `of multiples of ${unit}, a micro-batch of each replica`,
      `${start} by ${increment}`,
    );
}

function stepsOf(
  { steps, epochs }: TrainingPlan,
  batchSize: number,
  data: OpenedData,
  resumed: Resumed | undefined,
): number {
  const numSamples = numSamplesOf(data, "train");
  if ((steps === undefined) === (epochs === undefined)) {
    const given = steps === undefined ? "neither" : "both";
    throw optionError("the job's training", "given in steps or in epochs", given);
  }
  if (epochs === undefined) return integer("steps", steps as number, 0);
  const lasting = lastingSteps(epochs * numSamples, batchSize, resumed?.state);
  if (epochs >= 0 && Number.isSafeInteger(lasting)) return lasting;
  throw optionError("epochs", "≥ 0, of samples that end", `${epochs} of ${numSamples} samples`);
}

/** Number of steps that an option gave to the resumed run: it holds unless an option or the job now gives another. */
function stepsBefore(training: TrainingPlan, resumed: Resumed | undefined): number | undefined {
  const { steps } = resumed === undefined ? {} : recipeIn(resumed.state);
  if (steps?.asked !== true || steps.planned !== plannedSteps(training)) return undefined;
  return (resumed?.state.step ?? 0) < steps.total ? steps.total : undefined;
}

/** Number of steps that use `numSamples` samples; if the batch size has changed, those that use the rest of them. */
function lastingSteps(numSamples: number, batchSize: number, before: TrainerState | undefined): number {
  if (before === undefined || (before.batchSize ?? batchSize) === batchSize)
    return Math.ceil(numSamples / batchSize);
  return before.step + Math.max(0, Math.ceil((numSamples - before.samplesConsumed) / batchSize));
}

/** @throws {TroupeError} `DATA_SPLIT` unless the data has such a split, with samples in it */
function numSamplesOf({ facts, splits }: OpenedData, split: string): number {
  const numSamples = Object.hasOwn(splits, split) ? (splits[split]?.numSamples ?? 0) : 0;
  if (numSamples > 0) return numSamples;
  const names = Object.entries(splits).map(([name, part]) => `${name} (${part.numSamples} samples)`);
  throw new TroupeError("DATA_SPLIT", {
    where: "data",
    expected: `a split named ${split} with samples in ${facts.source}`,
    got: names.join(", ") || "no splits",
    fields: { split, splits },
  });
}

/** Facts about a model that decide how it can be laid out. */
function factsOf(
  job: Job,
  model: Module,
  config: JobConfig,
  settings: RuntimeSettings,
): parallel.LayoutFacts {
  const { mesh } = settings.layout;
  const counts = parallel.expertCounts(model);
  return {
    numBlocks: cutBlocks(model).numCalls,
    dividedByTp: mesh.tp > 1 ? parallel.tensorDivisors(model, tensorPlanOf(job, model, config)) : {},
    numExperts: counts.length === 0 ? 0 : counts.reduce(greatestCommonDivisor),
  };
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}

/** A job's model, optimizers and schedules, declared once its data is known. */
export interface DeclaredJob {
  readonly model: Module;
  readonly optimizers: readonly optim.OptimizerSpec[];
  /** One per optimizer. */
  readonly schedules: readonly optim.Schedule[];
}

/**
 * Declares the job's model without allocating memory, to find errors before any actor is spawned.
 * @throws {TroupeError} errors of the job's `model`, `optimizer` and `schedule`; `DATA_VOCABULARY` where the model
 * lacks tokens of the data; `LAYOUT` where it cannot be laid out as asked; `OPTIMIZER_OPTION` where an optimizer cannot
 * update a rank's share
 */
export function dryRun(
  job: Job,
  config: JobConfig,
  data: OpenedData,
  settings: RuntimeSettings,
  batch: BatchPlan,
): DeclaredJob {
  const model = modelOf(job, config, data.facts);
  const { vocabSize } = model as { readonly vocabSize?: number };
  const { source, vocabSize: numTokens } = data.facts;
  if (vocabSize !== undefined && numTokens !== undefined)
    checkVocabulary({ source, vocabSize: numTokens }, vocabSize);
  if (settings.precision.invariant) checkInvariant(model);
  const optimizers = optimizersOf(job, model, config);
  const schedules = schedulesOf(job, optimizers, config, data.facts);
  const { ranks, mesh, zero, schedule, chunks } = settings.layout;
  const { tp, pp, ep } = mesh;
  const { batchSize, accumulation } = batch;
  const layout = { ranks, tp, pp, ep, zero, schedule, chunks, batchSize, accumulation };
  parallel.checkLayout(factsOf(job, model, config, settings), layout);
  const held = heldByFirst(job, config, data, settings).namedParameters();
  optim.checkOptimizers(
    optimizers,
    [...held].filter(([, { role }]) => role !== "base"),
  );
  return { model, optimizers, schedules };
}

/** Activations whose result does not depend on an element's place in memory. */
const EXACT: readonly (ActivationName | undefined)[] = [undefined, "linear", "relu", "relu2"];

/** @throws {TroupeError} `OPTION` for a model of which a part may compute a token by others than those that it sees */
function checkInvariant(model: Module): void {
  const refuse = (expected: string, got: string) => optionError("invariant", expected, got);
  if ((model as { readonly packs?: boolean }).packs !== true)
    throw refuse(
      "used with a model that writes texts and can pack them into one row",
      model.constructor.name,
    );
  if (isPrefixed(model)) throw refuse("used without prefixes, of which generation keeps no pages", "one");
  for (const [name, module] of model.namedModules()) {
    if (module instanceof MixtureOfExperts)
      throw refuse("used without experts, of which each computes its tokens together", name);
    const { activation, isGated } = module as {
      readonly activation?: ActivationName;
      readonly isGated?: boolean;
    };
    const isGelu = geluForm(activation) !== undefined;
    const isFused =
      module instanceof Affine
        ? module.bias !== null && isGelu
        : isGated === true && (isGelu || activation === "silu" || activation === "swish");
    if (!isFused && !EXACT.includes(activation))
      throw refuse(
        "used with relu, gelu after a bias, or a gate of silu or gelu",
        `${activation} in ${name}`,
      );
  }
}

/** Another copy of the model, as tensor and expert parallelism split it for the first rank. */
function heldByFirst(job: Job, config: JobConfig, data: OpenedData, settings: RuntimeSettings): Module {
  const { mesh } = settings.layout;
  const model = modelOf(job, config, data.facts);
  if (mesh.tp > 1) {
    const plan = tensorPlanOf(job, model, config);
    if (settings.layout.sequenceParallel) requireSequenceEntry(plan);
    parallel.cutParameters(model, plan, { index: 0, count: mesh.tp });
  }
  parallel.cutExperts(model, { index: 0, count: mesh.ep });
  return model;
}

/** The job of a run whose data is open, and the state that it begins from. */
interface PlannedRun {
  readonly job: Job;
  readonly jobUrl: string;
  readonly config: JobConfig;
  readonly batch: BatchPlan;
  readonly data: OpenedData;
  readonly start: Start;
}

/** Completes the plan once a run's data is open and its initial state known. */
export function planRun(
  { job, jobUrl, config, batch, data, start }: PlannedRun,
  settings: RuntimeSettings,
  groups: GroupPlan,
  isLive: boolean,
): RunPlan {
  const { training } = batch;
  return {
    schedule: {
      steps: batch.steps,
      evaluateEverySteps: training.evaluateEverySteps ?? Number.POSITIVE_INFINITY,
      evaluation: isLive
        ? evaluationOnRequest(data, batch, settings, job)
        : evaluationBatches(data, batch, settings, job),
      best: bestRuleOf(training),
      predicts: job.predict !== undefined,
      saving: { ...savingRules(settings.checkpoint), begunFrom: start.texts, adapter: start.base?.adapter },
      memoryEverySteps: settings.telemetry.memory.everySteps,
      histogramsEverySteps: settings.telemetry.histograms.everySteps,
      sample: job.sample !== undefined,
    },
    ranks: {
      job: { url: jobUrl, config, facts: data.facts },
      layout: settings.layout,
      groups,
      execution: settings.execution,
      precision: settings.precision,
      training: {
        seed: start.seed,
        sampler: samplerStateOf(start, batch),
        accumulation: batch.accumulation,
        microBatchSize: batch.microBatchSize,
        clip: optim.clipRuleOf(training.clipNorm),
        recentLosses: [],
      },
      anomalies: settings.anomalies,
      offload: settings.offload,
      telemetry: settings.telemetry,
      initial: start.initial,
      isSaved: settings.checkpoint?.dir !== undefined,
      generation: 0,
    },
  };
}

/** Returns the rule for the best state. @throws {TroupeError} `OPTION` for a rule by evaluations that are never made */
function bestRuleOf({ best, evaluateEverySteps }: TrainingPlan): BestRule | undefined {
  if (best !== undefined && evaluateEverySteps === undefined)
    throw optionError("evaluateEverySteps of the job's training", "given where best is", "none");
  return best;
}

/** Saves nothing unless the settings ask for it. */
function savingRules(checkpoint: CheckpointSettings | undefined): SavingRules {
  return {
    everySteps: checkpoint?.dir === undefined ? undefined : checkpoint.everySteps,
    inMemoryEverySteps: checkpoint?.inMemoryEverySteps,
    whenBusy: checkpoint?.whenBusy ?? "wait",
    mayBeApart: checkpoint?.writers === "ranks",
    maxStagedBytes: checkpoint?.maxStagedBytes ?? Number.POSITIVE_INFINITY,
  };
}

/** Returns the first sample to read: where the checkpoint left off, whatever its number of steps. */
export function samplerStateOf(
  { initial, resumed }: Start,
  { batchSize, rampUp }: Pick<SamplerState, "batchSize" | "rampUp">,
): SamplerState {
  const numSamples = resumed?.state.samplesConsumed ?? 0;
  return { step: initial.step, numSamples, batchSize, ...(rampUp && { rampUp }), skips: [] };
}

/** Batches of the splits that a script may evaluate; none where the plan does not evaluate and the data or the job cannot. */
function evaluationOnRequest(
  data: OpenedData,
  batch: BatchPlan,
  settings: RuntimeSettings,
  job: Job,
): BatchRequest[] {
  try {
    requireLoss(job);
    return evaluationBatches(data, batch, settings, job, true);
  } catch (error) {
    // A script that never asks for it needs none; one that does is refused then.
    if (batch.training.evaluateEverySteps === undefined) return [];
    throw error;
  }
}

/** Batches of each evaluated split, as large as a micro-batch. */
function evaluationBatches(
  data: OpenedData,
  { training, microBatchSize }: BatchPlan,
  { layout: { mesh } }: RuntimeSettings,
  { predict }: Job,
  isOnRequest = false,
): BatchRequest[] {
  const { evaluateEverySteps, evaluationSplits = ["validation"] } = training;
  if (evaluateEverySteps === undefined && !isOnRequest) return [];
  // Replicas that share experts exchange equal numbers of tokens, so an incomplete last batch is dropped, except where
  // the dataset scores predictions.
  const isEven = mesh.ep > 1;
  return evaluationSplits.flatMap((split) => {
    const numUsed = Math.min(
      numSamplesOf(data, split),
      training.evaluationSamples ?? Number.POSITIVE_INFINITY,
    );
    if (numUsed === Number.POSITIVE_INFINITY)
      throw optionError("evaluationSamples", `given for split ${split}, which never ends`, "none");
    const size =
      isEven && predict !== undefined ? greatestCommonDivisor(microBatchSize, numUsed) : microBatchSize;
    const requests: BatchRequest[] = [];
    for (let position = 0; position < numUsed; position += size)
      requests.push({ split, position, numSamples: Math.min(size, numUsed - position) });
    return isEven ? requests.filter((request) => request.numSamples === size) : requests;
  });
}

/** @throws {TroupeError} `OPTION` unless `value` is a whole number of at least `lowest` */
function integer(option: string, value: number, lowest: number): number {
  if (Number.isSafeInteger(value) && value >= lowest) return value;
  throw optionError(option, `a whole number ≥ ${lowest}`, value);
}
