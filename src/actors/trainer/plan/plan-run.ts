import type { GroupPlan } from "../../../compute/collectives/index.ts";
import { cutBlocks, type Module } from "../../../compute/nn/index.ts";
import {
  checkOptimizers,
  clipRuleOf,
  type OptimizerSpec,
  type Schedule,
} from "../../../compute/optim/index.ts";
import {
  checkLayout,
  cutExperts,
  cutParameters,
  expertCounts,
  type Layout,
  type LayoutFacts,
  tensorDivisors,
} from "../../../compute/parallel/index.ts";
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

/** A run, settled to the last number before anything of it is spawned. Plain data. */
export interface RunPlan {
  readonly schedule: RunSchedule;
  readonly ranks: RankPlan;
}

/** How a job's batch is dealt to ranks and micro-batches. */
export interface BatchPlan {
  readonly training: TrainingPlan;
  readonly steps: number;
  /** Whether an option says how many, now or in the run that this one goes on with. */
  readonly isStepsAsked: boolean;
  readonly batchSize: number;
  readonly accumulation: number;
  /** How the batch grows to that; undefined where it does not. */
  readonly rampUp: RampUp | undefined;
  /** Samples in one micro-batch of one replica. */
  readonly microBatchSize: number;
}

/**
 * Divides the batch, once the data is open. Whether it can be divided so is checked by {@link dryRun}, which knows the
 * model, and with it the layouts that really work.
 * @throws {TroupeError} `OPTION`; `DATA_SPLIT` where the data lacks what is to be read of it; `JOB_INVALID` for a loop without a
 *   loss that is to be evaluated or cut into stages
 */
export function planBatch(
  job: Job,
  training: TrainingPlan,
  data: OpenedData,
  settings: RuntimeSettings,
  resumed: Resumed | undefined,
): BatchPlan {
  if (training.evaluateEverySteps !== undefined || settings.layout.mesh.pp > 1) requireLoss(job);
  const accumulation = settings.training.accumulation ?? whole("accumulation", training.accumulation ?? 1, 1);
  const batchSize = whole("batchSize", training.batchSize, 1);
  const asked = settings.training.steps ?? stepsBefore(training, resumed);
  const steps = asked ?? stepsOf(training, batchSize, data, resumed);
  const microBatchSize = batchSize / (settings.layout.mesh.dp * accumulation);
  const isStepsAsked = asked !== undefined;
  const rampUp = training.rampUp && { ...training.rampUp, end: batchSize };
  if (rampUp !== undefined) checkRamp(rampUp, training, settings, microBatchSize);
  return { training, steps, isStepsAsked, batchSize, accumulation, rampUp, microBatchSize };
}

/** A batch grows by whole micro-batches of all replicas, of all stages where chunks take turns. */
function checkRamp(
  { start, end, increment }: RampUp,
  { epochs }: TrainingPlan,
  { layout: { mesh, schedule } }: RuntimeSettings,
  microBatchSize: number,
): void {
  const unit = microBatchSize * mesh.dp * (schedule === "interleaved" ? mesh.pp : 1);
  const grows = start <= end && (end - start) % increment === 0;
  if (epochs !== undefined) throw optionError("rampUp", "with steps", "epochs");
  if (!grows) throw optionError("rampUp", `to reach ${end} in whole increments`, `${start} by ${increment}`);
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
    throw optionError("the job's training", "told in steps or in epochs", given);
  }
  if (epochs === undefined) return whole("steps", steps as number, 0);
  const lasting = lastingSteps(epochs * numSamples, batchSize, resumed?.state);
  if (epochs >= 0 && Number.isSafeInteger(lasting)) return lasting;
  throw optionError("epochs", "≥ 0, of samples that end", `${epochs} of ${numSamples} samples`);
}

/** What an option once said of a run holds until it is done, or an option or the job says another. */
function stepsBefore(training: TrainingPlan, resumed: Resumed | undefined): number | undefined {
  const { steps } = resumed === undefined ? {} : recipeIn(resumed.state);
  if (steps?.asked !== true || steps.planned !== plannedSteps(training)) return undefined;
  return (resumed?.state.step ?? 0) < steps.total ? steps.total : undefined;
}

/** Steps in which so many samples are gone through; with another batch size than before, those that are left then. */
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
  throw new TroupeError(
    "DATA_SPLIT",
    {
      where: "data",
      expected: `a split named ${split} with samples in ${facts.source}`,
      got: names.join(", ") || "no splits",
    },
    { fields: { split, splits } },
  );
}

/** What of a model decides how it can be spread. */
function factsOf(job: Job, model: Module, config: JobConfig, settings: RuntimeSettings): LayoutFacts {
  const { mesh } = settings.layout;
  const counts = expertCounts(model);
  return {
    numBlocks: cutBlocks(model).numCalls,
    dividedByTp: mesh.tp > 1 ? tensorDivisors(model, tensorPlanOf(job, model, config)) : {},
    numExperts: counts.length === 0 ? 0 : counts.reduce(greatestCommonDivisor),
  };
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}

function layoutOf(
  { layout: { ranks, mesh, zero, schedule, chunks } }: RuntimeSettings,
  batch: Pick<BatchPlan, "batchSize" | "accumulation">,
): Layout {
  const { tp, pp, ep } = mesh;
  const { batchSize, accumulation } = batch;
  return { ranks, tp, pp, ep, zero, schedule, chunks, batchSize, accumulation };
}

/** What a job declares, once its data is known. */
export interface DeclaredJob {
  readonly model: Module;
  readonly optimizers: readonly OptimizerSpec[];
  /** One an optimizer. */
  readonly schedules: readonly Schedule[];
}

/**
 * Declares the job's model, without memory, to find what is wrong with it before anything is spawned for it.
 * @throws {TroupeError} what the job's `model`, `optimizer` and `schedule` throw; `DATA_VOCABULARY` where the model
 *   lacks tokens of the data; `LAYOUT` where it cannot be spread as asked; `OPTIMIZER_OPTION` where an optimizer cannot
 *   update what a rank holds then
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
  const optimizers = optimizersOf(job, model, config);
  const schedules = schedulesOf(job, optimizers, config, data.facts);
  checkLayout(factsOf(job, model, config, settings), layoutOf(settings, batch));
  const held = heldByFirst(job, config, data, settings).namedParameters();
  checkOptimizers(
    optimizers,
    [...held].filter(([, { role }]) => role !== "base"),
  );
  return { model, optimizers, schedules };
}

/** The job's model anew, as far as tensor and expert parallelism leave it to the first rank. */
function heldByFirst(job: Job, config: JobConfig, data: OpenedData, settings: RuntimeSettings): Module {
  const { mesh } = settings.layout;
  const model = modelOf(job, config, data.facts);
  if (mesh.tp > 1) {
    const plan = tensorPlanOf(job, model, config);
    if (settings.layout.sequenceParallel) requireSequenceEntry(plan);
    cutParameters(model, plan, { index: 0, count: mesh.tp });
  }
  cutExperts(model, { index: 0, count: mesh.ep });
  return model;
}

/** Settles a run once its data is open and its beginning known. */
export function planRun(
  source: { readonly job: Job; readonly jobUrl: string; readonly config: JobConfig },
  settings: RuntimeSettings,
  batch: BatchPlan,
  data: OpenedData,
  start: Start,
  groups: GroupPlan,
): RunPlan {
  const { job, jobUrl, config } = source;
  const { training } = batch;
  return {
    schedule: {
      steps: batch.steps,
      evaluateEverySteps: training.evaluateEverySteps ?? Number.POSITIVE_INFINITY,
      evaluation: evaluationBatches(data, batch, settings, job),
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
        clip: clipRuleOf(training.clipNorm),
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

/** @throws {TroupeError} `OPTION` for a rule by evaluations that are never made */
function bestRuleOf({ best, evaluateEverySteps }: TrainingPlan): BestRule | undefined {
  if (best !== undefined && evaluateEverySteps === undefined)
    throw optionError("evaluateEverySteps of the job's training", "given where best is", "none");
  return best;
}

/** Nothing is saved unless told. */
function savingRules(checkpoint: CheckpointSettings | undefined): SavingRules {
  return {
    everySteps: checkpoint?.dir === undefined ? undefined : checkpoint.everySteps,
    inMemoryEverySteps: checkpoint?.inMemoryEverySteps,
    whenBusy: checkpoint?.whenBusy ?? "wait",
    mayBeApart: checkpoint?.writers === "ranks",
    maxStagedBytes: checkpoint?.maxStagedBytes ?? Number.POSITIVE_INFINITY,
  };
}

/** @returns where the samples go on: where a checkpoint left them, whatever the number of its steps */
export function samplerStateOf(
  { initial, resumed }: Start,
  { batchSize, rampUp }: Pick<SamplerState, "batchSize" | "rampUp">,
): SamplerState {
  const numSamples = resumed?.state.samplesConsumed ?? 0;
  return { step: initial.step, numSamples, batchSize, ...(rampUp && { rampUp }), skips: [] };
}

/** Samples of each split that is evaluated, side by side, as many a batch as a micro-batch has. */
function evaluationBatches(
  data: OpenedData,
  { training, microBatchSize }: BatchPlan,
  { layout: { mesh } }: RuntimeSettings,
  { predict }: Job,
): BatchRequest[] {
  const { evaluateEverySteps, evaluationSplits = ["validation"] } = training;
  if (evaluateEverySteps === undefined) return [];
  // Replicas that share experts exchange tokens in equal numbers: a rest is left out, but never of what is scored.
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

/** @throws {TroupeError} `OPTION` unless `value` is a whole number from `lowest` to `highest` */
function whole(option: string, value: number, lowest: number, highest = Number.MAX_SAFE_INTEGER): number {
  if (Number.isSafeInteger(value) && value >= lowest && value <= highest) return value;
  const range = highest === Number.MAX_SAFE_INTEGER ? `≥ ${lowest}` : `from ${lowest} to ${highest}`;
  throw optionError(option, `a whole number ${range}`, value);
}
