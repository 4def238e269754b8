import { type Module, type RecordedTensor, TensorRecording } from "../../../compute/nn/index.ts";
import {
  type BlockEngine,
  type MeshPlace,
  mapTensors,
  type PassKey,
  type PipelineAction,
} from "../../../compute/parallel/index.ts";
import {
  full,
  hold,
  type LateNumber,
  moveRef,
  ops,
  readLater,
  scaleStatistics,
  scope,
  Tensor,
  type TensorRef,
  tensor,
} from "../../../compute/tensor/index.ts";
import { TroupeError } from "../../../errors/index.ts";
import {
  type BackwardOptions,
  checkLosses,
  type ForwardResult,
  type Losses,
  weighLosses,
} from "../../../job/index.ts";
import { disposeBatch, type TensorBatch } from "../../../library/data/index.ts";
import { type ActorRef, systemClock } from "../../../runtime/index.ts";
import { matchesName } from "../../inspect/index.ts";
import {
  type RankPlan,
  type RankStepped,
  type ShardProtocol,
  type StepOrder,
  sentTo,
} from "../../protocols/index.ts";
import type { BatchSource, WeighedBatch } from "./batch-source.ts";
import { loopOrder } from "./loop-order.ts";
import { type MicroBatches, namedValues, type StepReport } from "./micro-batches.ts";
import type { RankModel } from "./rank-model.ts";
import type { Gather, ShardLink } from "./shard-link.ts";
import type { StageLink } from "./stage-link.ts";
import type { TrainingChange } from "./step-training.ts";

/** What a rank makes its steps with. */
export interface StepParts {
  readonly plan: RankPlan;
  readonly place: MeshPlace;
  readonly model: RankModel;
  /** Micro-batches of one replica in a step. */
  readonly numMicroBatches: (step: number) => number;
  /** What this stage does in a step, in order. */
  readonly actionsAt: (step: number) => readonly PipelineAction[];
  readonly engine: BlockEngine<Gather>;
  readonly shard: ShardLink;
  readonly shardRef: ActorRef<ShardProtocol>;
  readonly stages: StageLink;
  readonly batches: BatchSource;
  readonly microBatches: MicroBatches;
  /** Reports what was done to one micro-batch, and since when. */
  readonly report: (activity: "forward" | "backward", of: { microBatch: number }, beginMs: number) => void;
}

/** A forward of a loop that waits for its backward. */
interface OpenForward {
  readonly key: PassKey;
  /** The number that its random numbers were drawn by. */
  readonly draws: number;
  /** Weighed by the micro-batch's share. */
  readonly lossNats: LateNumber;
  readonly named: (() => Readonly<Record<string, number>>) | undefined;
  /** Whether a parameter can be trained by it. */
  readonly isTrainable: boolean;
}

/**
 * One step that the conductor has granted, on one rank, from its first forward to what is told of it: either {@link train},
 * all micro-batches in the order of the layout; or, for a loop of one's own, micro-batch after micro-batch by
 * {@link beginMicroBatch}, {@link forward}, {@link backward} and {@link endMicroBatch}. {@link end} ends both.
 */
export class GrantedStep implements Disposable {
  readonly #parts: StepParts;
  readonly #order: StepOrder;
  readonly #beginMs = performance.now();
  readonly #recording: TensorRecording | undefined;
  readonly #report: StepReport = {
    losses: [],
    namedLosses: [],
    witnesses: [],
    numCounted: [],
    numSamples: 0,
    numTokens: undefined,
  };
  /** The micro-batch that a loop is at, and its batch. */
  #at: { readonly microBatch: number; readonly batch: WeighedBatch } | undefined;
  /** Of the micro-batch that a loop is at, by what was returned as its loss; undefined once walked backwards. */
  readonly #forwards = new Map<Losses, OpenForward | undefined>();
  /** Of that micro-batch: the losses walked backwards, whose sum is its own. */
  readonly #lossesNats: LateNumber[] = [];
  readonly #named: (() => Readonly<Record<string, number>>)[] = [];
  #numForwards = 0;
  #hasBegun = false;
  /** What is told of what it trains, once its forwards are made. */
  #training: TrainingChange = {};

  constructor(parts: StepParts, order: StepOrder) {
    this.#parts = parts;
    this.#order = order;
    // What was logged outside any step is none's.
    parts.model.metrics.take();
    const { recordValues = [] } = order;
    const keeps = (name: string) => recordValues.some((pattern) => matchesName(name, pattern));
    this.#recording = order.record === true ? new TensorRecording(keeps) : undefined;
  }

  /** Number of the step, from 0. */
  get index(): number {
    return this.#order.step;
  }

  /** Whether a micro-batch has given the step a gradient. */
  get isTrained(): boolean {
    return this.#lossesNats.length > 0;
  }

  /**
   * All micro-batches, forward and backward; gradients leave for the shard block by block, while backward goes on.
   * @param lossesOf - the losses of one batch
   */
  train(lossesOf: (batch: TensorBatch) => Losses): void {
    const { microBatches, report } = this.#parts;
    const actions = this.#parts.actionsAt(this.index);
    const lastForward = actions.findLastIndex(({ kind }) => kind === "forward");
    const recorded = (batch: TensorBatch): Losses => {
      const losses = lossesOf(batch);
      checkLosses(losses);
      if (!needGradient(losses)) refuseDetached(this.#parts.model.module, "loss");
      return losses;
    };
    actions.forEach((action, index) => {
      const beginMs = systemClock.now();
      if (action.kind === "forward") microBatches.forward(this.index, action, recorded, this.#report);
      else microBatches.backward(this.index, action, index === actions.length - 1);
      if (index === 0) this.#sendBegin();
      if (index === lastForward) {
        this.#parts.engine.noteTrained();
        this.#sendScored();
      }
      report(action.kind, { microBatch: action.microBatch }, beginMs);
    });
  }

  /** @returns the batch of a loop's next micro-batch, which {@link endMicroBatch} releases */
  beginMicroBatch(microBatch: number): TensorBatch {
    const batch = this.#parts.batches.next(this.index, microBatch);
    this.#at = { microBatch, batch };
    this.#lossesNats.length = 0;
    this.#named.length = 0;
    this.#parts.model.metrics.begin(batch.weight);
    return batch.batch;
  }

  /**
   * A forward of a loop.
   * @throws {TroupeError} `LOOP_ORDER`
   */
  forward<R extends ForwardResult>(body: () => R): R {
    const { engine, report } = this.#parts;
    const { microBatch, batch } = this.#place("forward");
    const beginMs = systemClock.now();
    const key = { microBatch: this.#numForwards++, chunk: 0 };
    const draws = this.#draw(this.#forwards.size);
    let result: R | undefined;
    let isTrainable = false;
    return scope(() => {
      const { result: loss } = engine.forward(key, () => {
        result = body();
        const recorded = lossesIn(result);
        isTrainable = needGradient(recorded);
        return weighLosses(recorded, batch.weight);
      });
      // The tape's own tensors go with its walk: what a loop is given are others, of the same memory.
      const given = mapTensors(result, (each) => each.detach()) as R;
      const losses = lossesIn(given);
      const lossNats = readLater(loss as Tensor);
      this.#forwards.set(losses, { key, draws, lossNats, named: namedValues(losses), isTrainable });
      if (!this.#hasBegun) this.#sendBegin();
      report("forward", { microBatch }, beginMs);
      return given;
    });
  }

  /**
   * The backward of a loop's forward.
   * @throws {TroupeError} `LOOP_ORDER`
   */
  backward(given: ForwardResult, { only }: BackwardOptions): void {
    const { engine, shard, model, report } = this.#parts;
    const { microBatch } = this.#place("backward");
    const losses = lossesIn(given);
    if (!this.#forwards.has(losses))
      throw loopOrder(
        "the loss of a rank.forward of this batch",
        "another tensor",
        "pass what rank.forward has returned",
      );
    const open = this.#forwards.get(losses);
    if (open === undefined)
      throw loopOrder(
        "one backward for each forward",
        "a second",
        "call rank.forward again, or add the losses up before",
      );
    if (!open.isTrainable) refuseDetached(model.module, "rank.backward");
    const beginMs = systemClock.now();
    this.#forwards.set(losses, undefined);
    this.#lossesNats.push(open.lossNats);
    if (open.named !== undefined) this.#named.push(open.named);
    model.randomness.microBatch = open.draws;
    const gradient = hold(() => full([], shard.progress.lossScale?.scale ?? 1));
    engine.backward(open.key, [gradient], undefined, only);
    gradient.dispose();
    report("backward", { microBatch }, beginMs);
  }

  /** The micro-batch that a loop is at is over: what it left without a backward is given up. */
  endMicroBatch(): void {
    const at = this.#at;
    if (at === undefined) return;
    this.#at = undefined;
    for (const open of this.#forwards.values()) if (open !== undefined) this.#parts.engine.drop(open.key);
    this.#forwards.clear();
    if (this.isTrained) this.#reportBatch(at.batch);
    disposeBatch(at.batch.batch);
  }

  #reportBatch(batch: WeighedBatch): void {
    const [first, ...more] = this.#lossesNats.map((lossNats) => lossNats()) as [number, ...number[]];
    const lossNats = more.reduce((sum, each) => sum + each, first);
    const named = this.#named.map((values) => values());
    const isOnDevice = this.#parts.plan.execution.devices[0] !== "cpu";
    const onDevice = isOnDevice ? hold(() => tensor([lossNats], { dtype: "float64" })) : undefined;
    this.#parts.microBatches.report(
      { nats: () => lossNats, onDevice },
      named.length === 0 ? undefined : () => sumsByName(named),
      batch,
      this.#report,
    );
  }

  /** A loop's gradients are complete: they leave for the shard. */
  handOn(): void {
    this.#sendScored();
    this.#parts.engine.flush();
  }

  /** @returns what is told of the step; its gradients have left for the shard */
  end(): RankStepped {
    const { plan, model, shard, shardRef, stages, batches, engine } = this.#parts;
    const { step, snapshotTo } = this.#order;
    // What a model does in one step it does in all: said before anything is trained in vain.
    if (step === plan.initial.step) model.checkUnchanged();
    if (snapshotTo !== undefined) shardRef.tell("snapshot", { step, checkpointer: snapshotTo });
    const { exposedMs, gatherMs } = shard.measured;
    const waits = {
      exposedMs: exposedMs + stages.waitedMs,
      gatherMs: gatherMs + stages.waitedMs,
      dataMs: batches.waitedMs,
    };
    const learningRate = model.rates.reported(this.#update, this.#order.rateFactor);
    const recorded = this.#recording === undefined ? [] : this.#ofStepLoss(this.#recording.finish());
    const durationMs = performance.now() - this.#beginMs;
    const metrics = this.#parts.microBatches.reports ? model.metrics.take() : [];
    const { losses, namedLosses, witnesses, numCounted, ...counts } = this.#report;
    const told = {
      ...counts,
      ...(witnesses.length > 0 && { witnessNats: witnesses.map((nats) => nats()) }),
      ...(numCounted.length > 0 && { numCounted }),
      lossesNats: losses.map(({ nats }) => nats()),
      namedLosses: namedLosses.map((values) => values()),
    };
    const reached = engine.takeReached();
    const isFirst = step === plan.initial.step && plan.generation === 0;
    const use = isFirst && reached !== undefined ? { reached: model.training.namesOf(reached) } : {};
    return { ...told, ...this.#training, ...use, learningRate, durationMs, waits, recorded, metrics };
  }

  /** The step is not made: gives back what a loop has begun of it. */
  abandon(): void {
    const at = this.#at;
    this.#at = undefined;
    for (const open of this.#forwards.values()) if (open !== undefined) this.#parts.engine.drop(open.key);
    this.#forwards.clear();
    if (at !== undefined) disposeBatch(at.batch.batch);
    this[Symbol.dispose]();
  }

  /** Stops looking at what the model records. */
  [Symbol.dispose](): void {
    this.#recording?.[Symbol.dispose]();
  }

  #place(call: string): { readonly microBatch: number; readonly batch: WeighedBatch } {
    if (this.#at !== undefined) return this.#at;
    throw loopOrder(`rank.${call} on a batch of rank.batches()`, "none at hand", "call it inside the loop");
  }

  /**
   * Sets which random numbers a forward draws: those of its micro-batch, and for a second one of it, others.
   * @returns what backward sets where it computes again
   */
  #draw(numBefore: number): number {
    const { model, place, plan } = this.#parts;
    const { microBatch } = this.#place("forward");
    const ofReplica = this.#parts.numMicroBatches(this.index);
    const draws = place.dp * ofReplica + microBatch + numBefore * plan.layout.mesh.dp * ofReplica;
    model.randomness.microBatch = draws;
    return draws;
  }

  /** Rates follow from how far the optimizer has come, which the first gathers have told. */
  #sendBegin(): void {
    const { model, shard, shardRef, plan } = this.#parts;
    const { step, inspect = [], inspectUpdates = [], ledger = false, histograms = false } = this.#order;
    const learningRates = model.rates.ofGroups(this.#update, this.#order.rateFactor);
    const frozen = model.training.begun();
    const looks = { inspect, inspectUpdates, ledger, histograms };
    shardRef.tell("begin", { step, learningRates, ...looks, ...(frozen && { frozen }) });
    this.#hasBegun = true;
    // Backward of what another rank does not train would wait for that rank.
    const { tp, pp, ep } = plan.layout.mesh;
    if (frozen !== undefined && tp * pp * ep > 1) shard.agree();
  }

  /** Before the last gradients, so that the shards know all that they judge the step by once these are reduced. */
  #sendScored(): void {
    const { shardRef, engine, model } = this.#parts;
    this.#training = model.training.made(engine.settleTrained());
    const { frozen } = this.#training;
    const lossesNats = this.#lossesForShard();
    shardRef.tell("scored", { step: this.index, lossesNats, ...(frozen && { frozen }) });
  }

  /** A device's losses go as they are: numbers would have to be waited for, and with them all that it has been given. */
  #lossesForShard(): readonly number[] | TensorRef {
    const tensors = this.#report.losses.flatMap(({ onDevice }) => onDevice ?? []);
    if (tensors.length === 0) return this.#report.losses.map(({ nats }) => nats());
    const joined = hold(() => ops.cat(tensors));
    for (const each of tensors) each.dispose();
    return moveRef(joined, sentTo(this.#parts.shardRef));
  }

  /** Number of the update that this step is to make, skipped ones left out. */
  get #update(): number {
    return this.#parts.shard.progress.numUpdates + 1;
  }

  /** Of the step's loss, the mean over all micro-batches; of tensor-parallel neighbours the first tells for all. */
  #ofStepLoss(recorded: readonly RecordedTensor[]): RecordedTensor[] {
    const { plan, place, shard } = this.#parts;
    if (place.tp > 0) return [];
    const numMicroBatches = plan.layout.mesh.dp * this.#parts.numMicroBatches(this.index);
    const divisor = numMicroBatches * (shard.progress.lossScale?.scale ?? 1);
    return recorded.map((each) => ({
      ...each,
      gradient: each.gradient && scaleStatistics(each.gradient, 1 / divisor),
    }));
  }
}

/** Of the losses that were walked backwards, as their sum is the micro-batch's: two of one name too. */
function sumsByName(all: readonly Readonly<Record<string, number>>[]): Readonly<Record<string, number>> {
  const sums: Record<string, number> = {};
  for (const [name, value] of all.flatMap((named) => Object.entries(named)))
    sums[name] = (sums[name] ?? 0) + value;
  return sums;
}

/** @throws {TroupeError} `LOSS_INVALID` for what is no scalar loss, nor several by name */
function lossesIn(given: ForwardResult): Losses {
  const isRecord = typeof given === "object" && !(given instanceof Tensor || given instanceof Promise);
  const losses: unknown = isRecord ? given?.loss : given;
  checkLosses(losses, "rank.forward");
  return losses;
}

/** Whether a gradient of these leads anywhere. A loss without values reads what another stage has, and is refused as that. */
function needGradient(losses: Losses): boolean {
  const each = losses instanceof Tensor ? [losses] : Object.values(losses);
  return each.some((loss) => loss.requiresGrad || loss.device === "meta");
}

/** @throws {TroupeError} `LOSS_INVALID` where parameters are to be trained by losses that do not depend on them */
function refuseDetached(model: Module, where: string): void {
  if (!model.parameters().some(({ trainable }) => trainable)) return;
  throw new TroupeError("LOSS_INVALID", {
    where,
    expected: "a loss that depends on the model's parameters",
    got: "one that needs no gradient",
    hint: "compute it from what the model returns, without detach, noGrad or item()",
  });
}
