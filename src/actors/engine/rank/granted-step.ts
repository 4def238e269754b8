import { type RecordedTensor, TensorRecording } from "../../../compute/nn/index.ts";
import type { Completion, PassKey } from "../../../compute/parallel/index.ts";
import { full, hold, scaleStatistics, scope } from "../../../compute/tensor/index.ts";
import { checkLosses, type Losses, scaleWeights, weighLosses } from "../../../job/index.ts";
import { disposeBatch, type TensorBatch } from "../../../library/data/index.ts";
import { systemClock } from "../../../runtime/index.ts";
import { matchesName } from "../../inspect/index.ts";
import type {
  BatchRequest,
  RankAccumulated,
  RankStepped,
  StepOrder,
  UpdateOrder,
} from "../../protocols/index.ts";
import type { WeighedBatch } from "./batch-source.ts";
import { needGradient, refuseDetached } from "./detached-loss.ts";
import type { RateChange } from "./learning-rates.ts";
import type { ModelRunner } from "./model-runner.ts";
import { type PassLoss, passLoss, StepLosses } from "./step-losses.ts";
import type { TrainingChange } from "./step-training.ts";

/** Micro-batches of a replica that are trained together: all of a step, or those of one call. */
export interface StepPart {
  /** Micro-batches of the step before them. */
  readonly first: number;
  readonly size: number;
  /** Whether the step ends with them. */
  readonly isLast: boolean;
  /** Where their samples are, if not where the run's sampler is. */
  readonly requests?: readonly BatchRequest[];
  /** The program of a live model that makes its losses. */
  readonly program?: string;
  /** Multiplies the share of each of its micro-batches in the step. Default: 1. */
  readonly weight?: number;
}

/** One granted step of a rank. {@link train} makes it in the order of the schedule, a job's own loop pass by pass. */
export class GrantedStep implements Disposable {
  readonly #runner: ModelRunner;
  readonly #order: StepOrder;
  readonly #beginMs = performance.now();
  readonly #recording: TensorRecording | undefined;
  readonly #losses: StepLosses;
  /** Batches in use, by micro-batch. */
  readonly #batches = new Map<number, WeighedBatch>();
  #part: StepPart;
  /** Sum of the weights of the micro-batches that are trained by parts; 0 where they count alike. */
  #numWeighed = 0;
  /** Whether a script decides how many micro-batches it has, and its rate. */
  #isCalled = false;
  #update: UpdateOrder;
  #hasBegun = false;
  /** Whether the present part has made a forward. */
  #isPartBegun = false;
  /** The parameters that it trains, once its forwards are made. */
  #training: TrainingChange = {};

  constructor(runner: ModelRunner, order: StepOrder) {
    this.#runner = runner;
    this.#order = order;
    this.#update = order;
    this.#part = { first: 0, size: runner.numMicroBatches(order.step), isLast: true };
    this.#losses = new StepLosses(runner.reportsLosses);
    // Metrics logged outside any step are dropped.
    runner.model.metrics.take();
    const { recordValues = [] } = order;
    const keeps = (name: string) => recordValues.some((pattern) => matchesName(name, pattern));
    this.#recording = order.record === true ? new TensorRecording(keeps) : undefined;
  }

  /** Number of the step, from 0. */
  get index(): number {
    return this.#order.step;
  }

  /** Whether it has made a forward. */
  get isBegun(): boolean {
    return this.#hasBegun;
  }

  /** Whether the part that was trained last has made a forward: else an error in it has changed nothing. */
  get isPartBegun(): boolean {
    return this.#isPartBegun;
  }

  /** Number of micro-batches of the replica so far. */
  get numMicroBatches(): number {
    return this.#part.first + this.#part.size;
  }

  /** Losses of its micro-batches so far; waits for a device. */
  get losses(): RankAccumulated {
    const { lossesNats, namedLosses } = this.#losses.reported;
    return { lossesNats, namedLosses };
  }

  /**
   * Runs micro-batches, forward and backward; with the step's last part, gradients leave for the shard block by block meanwhile.
   * @param part - default: all micro-batches of the step
   */
  train(lossesOf: (batch: TensorBatch) => Losses, part = this.#part): void {
    const { engine, model } = this.#runner;
    this.#part = part;
    this.#isPartBegun = false;
    this.#numWeighed += part.size * (part.weight ?? 1);
    const actions = this.#runner.schedule(part.size);
    const lastForward = actions.findLastIndex(({ kind }) => kind === "forward");
    const lastMicroBatch = part.size - 1;
    const compute = ({ batch }: WeighedBatch): Losses => {
      const losses = lossesOf(batch);
      checkLosses(losses);
      if (!needGradient(losses)) refuseDetached(model.module, "loss");
      return losses;
    };
    actions.forEach(({ kind, microBatch, chunk }, index) => {
      const key = { microBatch: part.first + microBatch, chunk, program: part.program };
      const completion = { chunk: microBatch === lastMicroBatch, step: index === actions.length - 1 };
      if (kind === "forward") this.forward(key, compute, (loss, batch) => this.add([loss], batch));
      else this.backward(key, part.isLast ? completion : undefined);
      if (kind === "backward" && chunk === 0) this.release(key.microBatch);
      if (index !== lastForward) return;
      engine.noteTrained();
      if (part.isLast) this.#sendScored();
    });
  }

  /** Takes back a part whose first forward has thrown: the step is as before it. @param before - the step's earlier micro-batches */
  undo({ first, size, weight = 1 }: StepPart): void {
    this.#numWeighed -= size * weight;
    this.release(first);
    this.#part = { first: 0, size: first, isLast: false };
  }

  /** @returns a micro-batch's samples, to be {@link release}d; metrics logged from here on count as they do */
  batch(microBatch: number): WeighedBatch {
    const batch = this.#batches.get(microBatch) ?? this.#weighed(this.#fetch(microBatch));
    this.#batches.set(microBatch, batch);
    this.#runner.model.metrics.begin(batch.weight);
    return batch;
  }

  #weighed(batch: WeighedBatch): WeighedBatch {
    const { weight = 1 } = this.#part;
    return weight === 1 ? batch : { ...batch, weight: scaleWeights(batch.weight, weight) };
  }

  #fetch(microBatch: number): WeighedBatch {
    const { batches } = this.#runner;
    const { first, requests } = this.#part;
    if (requests === undefined) return batches.next(this.index, microBatch);
    return batches.fetch(requests[microBatch - first] as BatchRequest);
  }

  release(microBatch: number): void {
    const batch = this.#batches.get(microBatch);
    this.#batches.delete(microBatch);
    if (batch !== undefined) disposeBatch(batch.batch);
  }

  /**
   * Runs a forward of a batch's losses, recorded for {@link backward}, from the stage before to the next.
   * @returns what `take` makes of their weighed sum; undefined if the model ends on another stage
   */
  forward<R>(
    key: PassKey,
    compute: (batch: WeighedBatch) => Losses,
    take: (loss: PassLoss, batch: WeighedBatch) => R,
  ): R | undefined {
    const { engine, stages, model } = this.#runner;
    const beginMs = systemClock.now();
    const batch = this.batch(key.microBatch);
    const received = stages.isFirst(key.chunk) ? [] : stages.receiveActivations(this.#work, key);
    model.randomness.microBatch = this.#draws(key);
    const taken = scope(() => {
      let losses: Losses | undefined;
      const weighed = () => {
        losses = compute(batch);
        return weighLosses(losses, batch.weight);
      };
      const { result: loss, sent } = engine.forward(key, weighed, received);
      if (loss !== undefined) return take(passLoss(losses as Losses, loss), batch);
      stages.sendActivations(this.#work, key, sent);
      return undefined;
    });
    if (!this.#hasBegun) this.#sendBegin();
    this.#isPartBegun = true;
    this.#runner.report("forward", key.microBatch, beginMs);
    return taken;
  }

  /**
   * Runs the backward of a forward, from the loss or from the next stage's gradients.
   * @param completion - left out if {@link handOn} says when the gradients are complete
   * @param only - names of the parameters whose gradients count; default all
   */
  backward(key: PassKey, completion?: Completion, only?: RegExp): void {
    const { engine, stages, shard, model } = this.#runner;
    const beginMs = systemClock.now();
    const gradients = stages.isLast(key.chunk)
      ? [hold(() => full([], shard.progress.lossScale?.scale ?? 1))]
      : stages.receiveGradients(this.#work, key);
    // Recomputation draws the forward's random numbers again.
    model.randomness.microBatch = this.#draws(key);
    const answers = engine.backward(key, gradients, completion, only);
    for (const gradient of gradients) gradient?.dispose();
    if (!stages.isFirst(key.chunk)) stages.sendGradients(this.#work, key, answers);
    this.#runner.report("backward", key.microBatch, beginMs);
  }

  drop(key: PassKey): void {
    this.#runner.engine.drop(key);
  }

  /** Adds a micro-batch's losses to the step's; their sum is its loss. Ownership passes. */
  add(losses: readonly PassLoss[], batch: WeighedBatch): void {
    this.#losses.add(losses, batch);
  }

  /** Takes the order that ends a step which a script makes, before its last part or {@link handOn}. */
  update(order: UpdateOrder): void {
    this.#update = order;
    this.#isCalled = true;
  }

  /** Completes the gradients of a loop's backwards: they leave for the shard. */
  handOn(): void {
    this.#sendScored();
    this.#runner.engine.flush();
  }

  /** @returns the report of the step; its gradients have left for the shard */
  end(): RankStepped {
    const { plan, model, shard, stages, batches, engine, reportsLosses } = this.#runner;
    const { step } = this.#order;
    const { snapshotTo } = this.#update;
    // A model does the same in all steps: refused before anything is trained in vain.
    if (step === plan.initial.step) model.checkUnchanged();
    if (snapshotTo !== undefined) shard.ref.tell("snapshot", { step, checkpointer: snapshotTo });
    const { exposedMs, gatherMs } = shard.measured;
    const waits = {
      exposedMs: exposedMs + stages.waitedMs,
      gatherMs: gatherMs + stages.waitedMs,
      dataMs: batches.waitedMs,
    };
    const learningRate = model.rates.reported(this.#updateIndex, this.#rates);
    const recorded = this.#recording === undefined ? [] : this.#ofStepLoss(this.#recording.finish());
    const durationMs = performance.now() - this.#beginMs;
    const metrics = reportsLosses ? model.metrics.take() : [];
    const losses = this.#losses.reported;
    const reached = engine.takeReached();
    const isFirst = step === plan.initial.step && plan.generation === 0;
    const use = isFirst && reached !== undefined ? { reached: model.training.namesOf(reached) } : {};
    const counted = this.#counted !== this.numMicroBatches && { numCountedBatches: this.#counted };
    const found = engine.takeUnrecorded();
    const unrecorded = found.length > 0 && { unrecorded: found };
    const made = engine.takePrograms();
    const programs = made.length > 0 && { programs: made };
    const calls = engine.takeBlockCalls();
    const blockCalls = calls !== undefined && { blockCalls: calls };
    return {
      ...losses,
      ...counted,
      ...this.#training,
      ...use,
      ...unrecorded,
      ...programs,
      ...blockCalls,
      learningRate,
      durationMs,
      waits,
      recorded,
      metrics,
    };
  }

  [Symbol.dispose](): void {
    this.#recording?.[Symbol.dispose]();
  }

  get #work(): string {
    return `step ${this.index}`;
  }

  /** @returns the key of a forward's random numbers: its micro-batch, or another for a second forward of it */
  #draws({ microBatch, repeat = 0 }: PassKey): number {
    const { place, plan } = this.#runner;
    const { first, size } = this.#part;
    const { dp } = plan.layout.mesh;
    return dp * first + place.dp * size + (microBatch - first) + repeat * dp * size;
  }

  /** Learning rates follow the optimizer's progress, which the first gathers report. */
  #sendBegin(): void {
    const { model, shard, plan } = this.#runner;
    const { step, inspect = [], inspectUpdates = [], ledger = false, histograms = false } = this.#order;
    const learningRates = model.rates.ofGroups(this.#updateIndex, this.#rates);
    const frozen = model.training.begun();
    const looks = { inspect, inspectUpdates, ledger, histograms };
    const { tp, pp, ep } = plan.layout.mesh;
    // Backward of a parameter that another rank does not train waits for that rank. The shards must know by then what is frozen.
    const exchanges = tp * pp * ep > 1;
    const begin = { step, learningRates, ...looks, ...(frozen && { frozen }) };
    shard.ref.tell("begin", begin, { lazy: !exchanges });
    this.#hasBegun = true;
    if (frozen !== undefined && exchanges) shard.agree();
  }

  /** Sent before the last gradients, so that the shards can judge the step once these are reduced. */
  #sendScored(): void {
    const { shard, engine, model, plan } = this.#runner;
    this.#training = model.training.made(engine.settleTrained());
    const { frozen } = this.#training;
    const lossesNats = this.#losses.sentTo(shard.ref, this.numMicroBatches / this.#counted);
    const called = this.#isCalled && {
      learningRates: model.rates.ofGroups(this.#updateIndex, this.#rates),
      numMicroBatches: plan.layout.mesh.dp * this.#counted,
    };
    shard.ref.tell("scored", { step: this.index, lossesNats, ...(frozen && { frozen }), ...called });
  }

  /** The number of micro-batches that the mean over the step divides by: each counts as much as its weight. */
  get #counted(): number {
    return this.#isCalled ? this.#numWeighed : this.numMicroBatches;
  }

  /** Skipped steps do not count. */
  get #updateIndex(): number {
    return this.#runner.shard.progress.numUpdates + 1;
  }

  get #rates(): RateChange {
    return { factor: this.#order.rateFactor, rate: this.#update.learningRate };
  }

  /** Scales recorded gradients to the step's loss; the first of tensor-parallel neighbours reports for all. */
  #ofStepLoss(recorded: readonly RecordedTensor[]): RecordedTensor[] {
    const { plan, reportsLosses, shard } = this.#runner;
    if (!reportsLosses) return [];
    const divisor = plan.layout.mesh.dp * this.#counted * (shard.progress.lossScale?.scale ?? 1);
    return recorded.map((each) => ({
      ...each,
      gradient: each.gradient && scaleStatistics(each.gradient, 1 / divisor),
    }));
  }
}
