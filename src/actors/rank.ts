import type { Batch, DatasetFacts } from "../data/index.ts";
import { TroupeError } from "../errors.ts";
import {
  bindRandomness,
  evaluating,
  type Module,
  Randomness,
  type RecordedTensor,
  TensorRecording,
  wrapForward,
} from "../nn/index.ts";
import { ActivationShelter } from "../offload/index.ts";
import type { ClipRule, LossScaleRule, OptimizerSpec, Schedule, StochasticRounding } from "../optim/index.ts";
import {
  BlockEngine,
  type BlockPlan,
  type FlatBlock,
  Mesh,
  type MeshPlace,
  type MeshShape,
  type PassKey,
  type PipelineAction,
  pipelineSchedule,
  type ScheduleName,
  type ZeroLevel,
} from "../parallel/index.ts";
import { type ActorContext, type ActorRef, defineActor } from "../runtime/index.ts";
import {
  type AutocastDType,
  attach,
  chargeThreadTo,
  type DType,
  full,
  hold,
  scaleStatistics,
  scope,
  setNumThreads,
  type Tensor,
} from "../tensor/index.ts";
import { BatchSource, disposeBatch, numTokensIn } from "./batch-source.ts";
import type { CheckpointerProtocol } from "./checkpointer.ts";
import { spreadModel, tensorPlanOf } from "./declare-model.ts";
import type { BatchRequest, FeederProtocol } from "./feeder.ts";
import { ownerOf } from "./held-memory.ts";
import { HeldTensors } from "./held-tensors.ts";
import type { InitialState } from "./initial-state.ts";
import { type Job, type JobConfig, loadJob, optimizersOf, schedulesOf } from "./job.ts";
import { type GroupPlan, RankGroups } from "./rank-groups.ts";
import { recipientName } from "./recipient.ts";
import type { OptimizerOffload, ShardProtocol, Slowdown } from "./shard.ts";
import { type Gather, ShardLink } from "./shard-link.ts";
import { StageLink, type StageLinkProtocol } from "./stage-link.ts";

/** Everything a rank must know of the run; the same on every rank. Plain data. */
export interface RankPlan {
  readonly jobUrl: string;
  readonly config: JobConfig;
  readonly facts: DatasetFacts;
  readonly mesh: MeshShape;
  /** In which order pipeline stages run micro-batches. */
  readonly schedule: ScheduleName;
  /** Chunks of the model on each pipeline stage. */
  readonly numChunks: number;
  readonly zero: ZeroLevel;
  /** Whether blocks that do not say otherwise are computed again in backward. */
  readonly recompute: boolean;
  /** Whether tensor-parallel ranks share the positions between the split layers. */
  readonly sequence: boolean;
  readonly overlapChunks: number;
  readonly groups: GroupPlan;
  /** Of the parameters that the model computes with. */
  readonly dtype: DType;
  /** What operators cast to; none where they compute in what they are given. */
  readonly autocast: AutocastDType | undefined;
  readonly seed: number;
  /** Micro-batches of one replica in one step. */
  readonly accumulation: number;
  /** Samples in one micro-batch of one replica. */
  readonly microBatchSize: number;
  readonly clip: ClipRule | undefined;
  readonly lossScale: LossScaleRule | undefined;
  /** Of narrow parameters. */
  readonly rounding: StochasticRounding | undefined;
  /** How far gathers run ahead of the computation, in bytes. */
  readonly prefetchBytes: number;
  /** Threads of one rank's arithmetic. */
  readonly numThreads: number;
  /** How long a rank waits for its shard or for data before it calls that a hang, in milliseconds. */
  readonly deadlineMs: number;
  /** What is kept outside ranks and shards, and where. */
  readonly offload: OffloadSettings;
  readonly slowdown: Slowdown;
  /** Whether actors tell what they do to each block. */
  readonly trace: boolean;
  readonly initial: InitialState;
  /** Life of the rank group, counted from 0. */
  readonly life: number;
}

/** What is kept elsewhere than where it is used. Plain data. */
export interface OffloadSettings {
  readonly optimizer: OptimizerOffload | undefined;
  /** What recomputed blocks keep for backward: in files on the disk of a folder. */
  readonly activations: { readonly directory: string } | undefined;
}

/** What the conductor learns of the model once a rank has built it. Plain data. */
export interface DeclaredModel {
  /** What this rank and its shard hold. */
  readonly layouts: readonly FlatBlock[];
  /** Names of the whole model's parameters, in order. */
  readonly parameters: readonly string[];
  readonly numParameters: number;
  /** config.json of a folder that `transformers` reads, where the model has one. */
  readonly modelConfig: Readonly<Record<string, unknown>> | undefined;
}

/** One rank's share of a step. */
export interface RankStepped {
  /** Loss of each micro-batch, in order; none but where the loss is computed, once for each replica. */
  readonly lossesNats: readonly number[];
  readonly learningRate: number;
  readonly numTokens: number;
  readonly durationMs: number;
  readonly waits: Waits;
  /** Tensors that the model records, where they are looked at. */
  readonly recorded: readonly RecordedTensor[];
}

/** What a rank waited for in one step, in milliseconds. */
export interface Waits {
  /** The computation stood still for parameters. */
  readonly exposedMs: number;
  /** Gathers were under way, hidden behind the computation or not. */
  readonly gatherMs: number;
  /** The computation stood still for data. */
  readonly dataMs: number;
}

/** One rank's share of an evaluation. */
export interface RankEvaluated {
  /** Each batch of this replica, in order; none but where the loss is computed. */
  readonly batches: readonly EvaluatedBatch[];
}

/** Held-out loss of one batch. */
export interface EvaluatedBatch {
  readonly lossNats: number;
  readonly numTokens: number;
}

/** One step, as the conductor grants it. Plain data. */
export interface StepOrder {
  readonly step: number;
  /** Who wants the state that follows it. */
  readonly snapshotTo?: ActorRef<CheckpointerProtocol>;
  /** Patterns of the parameters that are looked at after it. */
  readonly inspect?: readonly string[];
  /** Whether tensors that the model records are looked at. */
  readonly record?: boolean;
  /** Whether the memory that each rank holds is looked at. */
  readonly ledger?: boolean;
}

export type RankProtocol = StageLinkProtocol & {
  /** Builds the model, without memory. `peers`: every rank of the world, in order. */
  declare: { in: { plan: RankPlan; peers: readonly ActorRef<RankProtocol>[] }; out: DeclaredModel };
  /** Has the shard lay out the state of what was declared, and binds the model to it. */
  prepare: { in: Record<string, never>; out: Record<string, never> };
  /** One optimizer step; parameters of step s have seen s updates. */
  step: { in: StepOrder; out: RankStepped };
  /** Held-out loss of the parameters of `step`: this rank's share of `requests`. */
  evaluate: { in: { step: number; requests: readonly BatchRequest[] }; out: RankEvaluated };
  /** What the job's `sample` makes of the parameters of `step`; every rank computes it, so that all gather alike. */
  sample: { in: { step: number }; out: { text: string } };
};

/** What a rank is born with. */
export interface RankInit {
  readonly rank: number;
  readonly shard: ActorRef<ShardProtocol>;
  readonly feeder: ActorRef<FeederProtocol>;
}

export default defineActor<RankProtocol, RankInit>({
  lanes: { activation: "control", gradient: "control", result: "control" },
  async start(context, init) {
    let rank: Rank | undefined;
    const declared = () => {
      if (rank === undefined) throw new Error("[rank] not declared");
      return rank;
    };
    return {
      handlers: {
        async declare({ plan, peers }) {
          setNumThreads(plan.numThreads);
          chargeThreadTo(ownerOf(init.rank), "activations");
          rank = new Rank(context, init, plan, peers, await loadJob(plan.jobUrl));
          return rank.declared;
        },
        prepare: () => declared().prepare(),
        step: (message) => declared().step(message),
        evaluate: (message) => declared().evaluate(message.step, message.requests),
        sample: (message) => declared().sample(message.step),
        activation: (message) => declared().stages.arrived(message),
        gradient: (message) => declared().stages.arrived(message),
        result: (message) => declared().stages.arrived(message),
      },
      stop: () => rank?.leave(),
    };
  },
});

/** Runs a job's model step by step; computes synchronously and waits by blocking, so nothing else runs in its thread. */
class Rank {
  readonly stages: StageLink;
  readonly #context: ActorContext<RankProtocol>;
  readonly #init: RankInit;
  readonly #plan: RankPlan;
  readonly #job: Job;
  readonly #place: MeshPlace;
  readonly #model: Module;
  readonly #held: HeldTensors;
  readonly #optimizers: readonly OptimizerSpec[];
  /** One an optimizer. */
  readonly #schedules: readonly Schedule[];
  readonly #randomness: Randomness;
  readonly #groups: RankGroups;
  readonly #blocks: BlockPlan;
  readonly #actions: readonly PipelineAction[];
  readonly #shard: ShardLink;
  readonly #engine: BlockEngine<Gather>;
  readonly #batches: BatchSource;
  /** Batches of micro-batches that are under way. */
  readonly #inUse = new Map<number, Batch>();

  constructor(
    context: ActorContext<RankProtocol>,
    init: RankInit,
    plan: RankPlan,
    peers: readonly ActorRef<RankProtocol>[],
    job: Job,
  ) {
    const { rank } = init;
    const { deadlineMs, accumulation, microBatchSize, numChunks } = plan;
    const mesh = new Mesh(plan.mesh);
    this.#context = context;
    this.#init = init;
    this.#plan = plan;
    this.#job = job;
    this.#place = mesh.placeOf(rank);
    this.#batches = new BatchSource(
      context,
      init.feeder,
      { accumulation, microBatchSize, numReplicas: mesh.shape.dp, replica: this.#place.dp },
      { reader: this.#name, deadlineMs },
    );
    this.#model = job.model(plan.config, plan.facts);
    this.#held = new HeldTensors(this.#model);
    this.#randomness = new Randomness(plan.seed);
    bindRandomness(this.#model, this.#randomness);
    this.#optimizers = optimizersOf(job, this.#model, plan.config);
    this.#schedules = schedulesOf(job, this.#optimizers, plan.config);
    this.#groups = new RankGroups(plan.groups, plan.mesh, rank, plan.life, deadlineMs);
    const tensorPlan = mesh.shape.tp > 1 ? tensorPlanOf(job, this.#model, plan.config) : undefined;
    const spread = { ...plan, mesh, rank };
    this.#blocks = spreadModel(this.#model, tensorPlan, this.#groups, () => this.#trialLoss(), spread);
    this.#actions = pipelineSchedule(plan.schedule, this.#place.pp, {
      numStages: mesh.shape.pp,
      numMicroBatches: accumulation,
      numChunks,
    });
    this.stages = new StageLink(context, peers, { mesh, rank, numChunks }, deadlineMs);
    this.#shard = new ShardLink(context, init.shard, { deadlineMs, trace: plan.trace });
    const { dtype, autocast, prefetchBytes } = plan;
    const { activations } = plan.offload;
    const shelter = activations && new ActivationShelter(activations.directory, { deadlineMs });
    this.#engine = new BlockEngine(this.#blocks, this.#shard, { dtype, autocast, prefetchBytes, shelter });
  }

  get #name(): string {
    return recipientName(this.#context.name, this.#context.incarnation);
  }

  get declared(): DeclaredModel {
    return {
      layouts: this.#blocks.layouts,
      parameters: [...this.#model.namedParameters().keys()],
      numParameters: this.#model.numParameters,
      modelConfig: modelConfigOf(this.#model),
    };
  }

  /** Has the shard lay the state out and binds the model to it. */
  async prepare(): Promise<Record<string, never>> {
    const { dtype, clip, lossScale, initial, life, numThreads, accumulation, deadlineMs } = this.#plan;
    const mesh = new Mesh(this.#plan.mesh);
    const shardPlan = {
      layouts: this.#blocks.layouts,
      replicas: mesh.groupOf("dp", this.#init.rank),
      modelParallel: mesh.groupOf("mp", this.#init.rank),
      dtype,
      optimizers: this.#optimizers.map((optimizer) => ({ ...optimizer, rounding: this.#plan.rounding })),
      clip,
      lossScale,
      numMicroBatches: accumulation * mesh.shape.dp,
      initial,
      life,
      numThreads,
      reader: this.#name,
      offload: this.#plan.offload.optimizer,
      slowdown: this.#plan.slowdown,
      trace: this.#plan.trace,
      deadlineMs,
    };
    const { fulls } = await this.#init.shard.ask("prepare", shardPlan, { deadlineMs });
    this.#engine.bind(fulls.map(attach));
    return {};
  }

  /** Forward and backward of one step; gradients leave for the shard block by block, while backward goes on. */
  step({ step, snapshotTo, inspect = [], record = false, ledger = false }: StepOrder): RankStepped {
    const begin = performance.now();
    using recording = record ? new TensorRecording() : undefined;
    this.#begin(step, "step");
    const report: Report = { lossesNats: [], numTokens: 0 };
    this.#actions.forEach((action, index) => {
      if (action.kind === "forward") this.#forward(step, action, report);
      else this.#backward(step, action, index === this.#actions.length - 1);
      // Rates follow from how far the optimizer has come, which the first gathers have told.
      if (index === 0)
        this.#init.shard.tell("begin", { step, learningRates: this.#learningRates(), inspect, ledger });
    });
    // What a model does in one step it does in all: said before anything is trained in vain.
    if (step === this.#plan.initial.step) this.#held.checkUnchanged();
    if (snapshotTo !== undefined) this.#init.shard.tell("snapshot", { step, checkpointer: snapshotTo });
    const { exposedMs, gatherMs } = this.#shard.measured;
    const waits = {
      exposedMs: exposedMs + this.stages.waitedMs,
      gatherMs: gatherMs + this.stages.waitedMs,
      dataMs: this.#batches.waitedMs,
    };
    const learningRate = this.#rates()[0] ?? 0;
    const recorded = recording === undefined ? [] : this.#unscaled(recording.finish());
    return { ...report, learningRate, durationMs: performance.now() - begin, waits, recorded };
  }

  /** Without the loss scale; of tensor-parallel neighbours the first tells for all. */
  #unscaled(recorded: readonly RecordedTensor[]): RecordedTensor[] {
    if (this.#place.tp > 0) return [];
    const scale = this.#shard.progress.lossScale?.scale ?? 1;
    return recorded.map((each) => ({
      ...each,
      gradient: each.gradient && scaleStatistics(each.gradient, 1 / scale),
    }));
  }

  /** Held-out loss of this replica's share of the batches: every `dp`-th. */
  evaluate(step: number, requests: readonly BatchRequest[]): RankEvaluated {
    this.#begin(step, "evaluate");
    const { dp } = this.#plan.mesh;
    const batches: EvaluatedBatch[] = [];
    evaluating(this.#model, () => {
      for (let first = 0; first < requests.length; first += dp) {
        const request = requests[first + this.#place.dp];
        // Replicas that have nothing of their own left compute along where experts are shared, and tell nothing.
        if (request === undefined && this.#plan.mesh.ep === 1) break;
        const batch = this.#batches.fetch(request ?? (requests[first] as BatchRequest));
        const pass = `evaluate ${step} ${first}`;
        scope(() => {
          const loss = this.#throughChunks(pass, () => this.#job.loss(this.#model, batch));
          if (loss !== undefined && this.#reports && request !== undefined)
            batches.push({ lossNats: loss.item(), numTokens: numTokensIn(batch) });
        });
        disposeBatch(batch);
      }
    });
    return { batches };
  }

  /** What the job shows of its model. */
  sample(step: number): { text: string } {
    const { config, facts, seed, mesh } = this.#plan;
    this.#begin(step, "sample");
    const restore = mesh.pp > 1 ? this.#stageForward(step) : () => {};
    try {
      const text = evaluating(this.#model, () =>
        this.#engine.evaluate(() => scope(() => this.#job.sample?.(this.#model, { config, facts, seed }))),
      );
      return { text: text ?? "" };
    } finally {
      restore();
    }
  }

  /** Lets every call of the model pass through all stages and give its result on each of them. */
  #stageForward(step: number): () => void {
    let numCalls = 0;
    return wrapForward(this.#model, (forward, inputs) => {
      const pass = `sample ${step} ${numCalls++}`;
      const result = this.#throughChunks(pass, () => forward(...inputs));
      if (result === undefined) return this.stages.receiveResult(pass) as never;
      this.stages.sendResult(pass, result);
      return result as never;
    });
  }

  /** Leaves the groups that it computes with. */
  leave(): void {
    this.#groups[Symbol.dispose]();
  }

  /** Each optimizer's rate for this step. */
  #rates(): number[] {
    return this.#schedules.map((schedule) => schedule.lrAt(this.#shard.progress.numUpdates + 1));
  }

  /** Rates of every group of every optimizer. */
  #learningRates(): number[] {
    const rates = this.#rates();
    return this.#optimizers.flatMap(({ groups }, index) =>
      groups.map((group) => (rates[index] ?? 0) * group.lrFactor),
    );
  }

  #begin(step: number, pass: string): void {
    this.#context.board.set(pass, "", step);
    this.#randomness.step = step;
    this.#shard.begin(step);
    this.stages.waitedMs = 0;
    this.#batches.waitedMs = 0;
    this.#engine.begin(pass);
  }

  #forward(step: number, key: PassKey, report: Report): void {
    const work = `step ${step}`;
    const batch = this.#batchOf(step, key.microBatch);
    const received = this.stages.isFirst(key.chunk) ? [] : this.stages.receiveActivations(work, key);
    this.#draw(key);
    scope(() => {
      const { result: loss, sent } = this.#engine.forward(
        key,
        () => this.#job.loss(this.#model, batch),
        received,
      );
      if (loss === undefined) {
        this.stages.sendActivations(work, key, sent);
        return;
      }
      const lossNats = loss.item();
      checkLoss(lossNats, step, this.#init.rank);
      if (!this.#reports) return;
      report.lossesNats.push(lossNats);
      report.numTokens += numTokensIn(batch);
    });
  }

  /** @param last - whether the step's gradients are whole after it */
  #backward(step: number, key: PassKey, last: boolean): void {
    const work = `step ${step}`;
    const gradients = this.stages.isLast(key.chunk)
      ? [hold(() => full([], this.#shard.progress.lossScale?.scale ?? 1))]
      : this.stages.receiveGradients(work, key);
    this.#draw(key);
    const completion = { chunk: key.microBatch === this.#plan.accumulation - 1, step: last };
    const answers = this.#engine.backward(key, gradients, completion);
    for (const gradient of gradients) gradient?.dispose();
    if (!this.stages.isFirst(key.chunk)) this.stages.sendGradients(work, key, answers);
    if (key.chunk === 0) this.#letGo(key.microBatch);
  }

  /** Forward of one batch without recording; the result on the last stage. */
  #throughChunks<R>(pass: string, body: () => R): R | undefined {
    let result: R | undefined;
    for (let chunk = 0; chunk < this.#plan.numChunks; chunk++) {
      const key = { microBatch: 0, chunk };
      const received = this.stages.isFirst(chunk) ? [] : this.stages.receiveActivations(pass, key);
      const forwarded = this.#engine.evaluateChunk(chunk, body, received);
      const { sent } = forwarded;
      if (forwarded.result === undefined) this.stages.sendActivations(pass, key, sent);
      else result = forwarded.result;
      for (const tensor of [...received, ...sent]) tensor.dispose();
    }
    return result;
  }

  /** Whether this rank tells the loss of its replica: one of those that compute it. */
  get #reports(): boolean {
    return this.#place.tp === 0;
  }

  /** Sets which random numbers forward draws, and backward where it computes again. */
  #draw({ microBatch }: PassKey): void {
    this.#randomness.microBatch = this.#place.dp * this.#plan.accumulation + microBatch;
  }

  #batchOf(step: number, microBatch: number): Batch {
    const known = this.#inUse.get(microBatch);
    if (known !== undefined) return known;
    const batch = this.#batches.next(step, microBatch);
    this.#inUse.set(microBatch, batch);
    return batch;
  }

  /** The loss of the first batch, computed with whatever the model's parameters are now. */
  #trialLoss(): Tensor {
    const numSamples = this.#plan.microBatchSize;
    const batch = this.#batches.fetch({ split: "train", position: 0, numSamples });
    try {
      return this.#job.loss(this.#model, batch);
    } finally {
      disposeBatch(batch);
    }
  }

  #letGo(microBatch: number): void {
    const batch = this.#inUse.get(microBatch);
    this.#inUse.delete(microBatch);
    if (batch !== undefined) disposeBatch(batch);
  }
}

/** What a step adds up. */
interface Report {
  readonly lossesNats: number[];
  numTokens: number;
}

function checkLoss(lossNats: number, step: number, rank: number): void {
  if (Number.isFinite(lossNats)) return;
  throw new TroupeError(
    "LOSS_NOT_FINITE",
    `[step ${step}] expected a finite loss on rank ${rank}: got ${lossNats} (lower the learning rate, clip gradients, or look at the batch)`,
    { fields: { step, rank, lossNats: String(lossNats) } },
  );
}

function modelConfigOf(model: Module): DeclaredModel["modelConfig"] {
  return (model as { readonly configJson?: DeclaredModel["modelConfig"] }).configJson;
}
