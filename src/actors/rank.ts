import type { Batch, DatasetFacts } from "../data/index.ts";
import { TroupeError } from "../errors.ts";
import { bindRandomness, evaluating, type Module, Randomness } from "../nn/index.ts";
import type {
  ClipRule,
  LossScaleRule,
  OptimizerProgress,
  OptimizerSpec,
  Schedule,
  StochasticRounding,
} from "../optim/index.ts";
import {
  BlockEngine,
  type BlockPlan,
  BusyTime,
  type FlatBlock,
  planBlocks,
  type ShardPort,
  type ZeroLevel,
} from "../parallel/index.ts";
import {
  type ActorContext,
  type ActorRef,
  defineActor,
  type Pending,
  systemClock,
} from "../runtime/index.ts";
import { type AutocastDType, attach, type DType, moveRef, scope, setNumThreads } from "../tensor/index.ts";
import type { CheckpointerProtocol } from "./checkpointer.ts";
import type { BatchRefs, BatchRequest, FeederProtocol } from "./feeder.ts";
import type { InitialState } from "./initial-state.ts";
import { type Job, type JobConfig, loadJob, optimizersOf, schedulesOf } from "./job.ts";
import { recipientName, sentTo } from "./recipient.ts";
import type { Gathered, ShardProtocol } from "./shard.ts";

/** Everything a rank must know of the run; the same on every rank. Plain data. */
export interface RankPlan {
  readonly jobUrl: string;
  readonly config: JobConfig;
  readonly facts: DatasetFacts;
  readonly zero: ZeroLevel;
  /** Of the parameters that the model computes with. */
  readonly dtype: DType;
  /** What operators cast to; none where they compute in what they are given. */
  readonly autocast: AutocastDType | undefined;
  readonly seed: number;
  /** Micro-batches of one rank in one step. */
  readonly accumulation: number;
  /** Samples in one micro-batch of one rank. */
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
  readonly initial: InitialState;
  /** Life of the rank group, counted from 0. */
  readonly life: number;
}

/** What the conductor learns of the model once a rank has built it. Plain data. */
export interface PreparedModel {
  readonly layouts: readonly FlatBlock[];
  readonly numParameters: number;
  /** config.json of a folder that `transformers` reads, where the model has one. */
  readonly modelConfig: Readonly<Record<string, unknown>> | undefined;
}

/** One rank's share of a step. */
export interface RankStepped {
  /** Loss of each micro-batch, in order. */
  readonly lossesNats: readonly number[];
  readonly learningRate: number;
  readonly numTokens: number;
  readonly durationMs: number;
  readonly waits: Waits;
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

/** A gather under way. */
interface Gather {
  readonly startedAtMs: number;
  readonly answer: Pending<Gathered>;
}

/** One rank's share of an evaluation. */
export interface RankEvaluated {
  /** Each batch of this rank, in order. */
  readonly batches: readonly EvaluatedBatch[];
}

/** Held-out loss of one batch. */
export interface EvaluatedBatch {
  readonly lossNats: number;
  readonly numTokens: number;
}

export type RankProtocol = {
  /** Builds the model and its shard's state. */
  prepare: { in: RankPlan; out: PreparedModel };
  /** One optimizer step; parameters of step s have seen s updates. */
  step: { in: { step: number; snapshotTo?: ActorRef<CheckpointerProtocol> }; out: RankStepped };
  /** Held-out loss of the parameters of `step`: this rank's share of `requests`. */
  evaluate: { in: { step: number; requests: readonly BatchRequest[] }; out: RankEvaluated };
  /** What the job's `sample` makes of the parameters of `step`; every rank computes it, so that all gather alike. */
  sample: { in: { step: number }; out: { text: string } };
};

/** What a rank is born with. */
export interface RankInit {
  readonly rank: number;
  readonly numRanks: number;
  readonly shard: ActorRef<ShardProtocol>;
  readonly feeder: ActorRef<FeederProtocol>;
}

/** Data asked for ahead of the batch that is computed. */
const BATCHES_AHEAD = 2;

export default defineActor<RankProtocol, RankInit>({
  async start(context, init) {
    let rank: Rank | undefined;
    const prepared = () => {
      if (rank === undefined) throw new Error("[rank] not prepared");
      return rank;
    };
    return {
      handlers: {
        async prepare(plan) {
          setNumThreads(plan.numThreads);
          rank = new Rank(context, init, plan, await loadJob(plan.jobUrl));
          return rank.prepare();
        },
        step: (message) => prepared().step(message.step, message.snapshotTo),
        evaluate: (message) => prepared().evaluate(message.step, message.requests),
        sample: (message) => prepared().sample(message.step),
      },
    };
  },
});

/** Runs a job's model step by step; computes synchronously and waits by blocking, so nothing else runs in its thread. */
class Rank {
  readonly #context: ActorContext<RankProtocol>;
  readonly #init: RankInit;
  readonly #plan: RankPlan;
  readonly #job: Job;
  readonly #model: Module;
  readonly #optimizers: readonly OptimizerSpec[];
  /** One an optimizer. */
  readonly #schedules: readonly Schedule[];
  readonly #randomness: Randomness;
  readonly #blocks: BlockPlan;
  readonly #engine: BlockEngine<Gather>;
  /** Batches asked for ahead, oldest first. */
  readonly #ahead: { readonly index: number; readonly batch: Pending<BatchRefs> }[] = [];
  #step = 0;
  /** How far the optimizer has come before this step; each answer to a gather tells. */
  #progress: OptimizerProgress = { numUpdates: 0 };
  #gathering = new BusyTime();
  #exposedMs = 0;
  #dataMs = 0;

  constructor(context: ActorContext<RankProtocol>, init: RankInit, plan: RankPlan, job: Job) {
    this.#context = context;
    this.#init = init;
    this.#plan = plan;
    this.#job = job;
    this.#model = job.model(plan.config, plan.facts);
    this.#optimizers = optimizersOf(job, this.#model, plan.config);
    this.#schedules = schedulesOf(job, this.#optimizers, plan.config);
    this.#randomness = new Randomness(plan.seed);
    bindRandomness(this.#model, this.#randomness);
    this.#blocks = planBlocks(this.#model, plan.zero, init.numRanks);
    this.#engine = new BlockEngine(this.#blocks, this.#port(), {
      dtype: plan.dtype,
      autocast: plan.autocast,
      prefetchBytes: plan.prefetchBytes,
    });
  }

  get #name(): string {
    return recipientName(this.#context.name, this.#context.incarnation);
  }

  /** Has the shard lay the state out and binds the model to it. */
  async prepare(): Promise<PreparedModel> {
    const { layouts } = this.#blocks;
    const { dtype, clip, lossScale, initial, life, numThreads, accumulation, deadlineMs } = this.#plan;
    const numMicroBatches = accumulation * this.#init.numRanks;
    const shardPlan = {
      layouts,
      dtype,
      optimizers: this.#optimizers.map((optimizer) => ({ ...optimizer, rounding: this.#plan.rounding })),
      clip,
      lossScale,
      numMicroBatches,
      initial,
      life,
      numThreads,
      reader: this.#name,
    };
    const { fulls } = await this.#init.shard.ask("prepare", shardPlan, { deadlineMs });
    this.#engine.bind(fulls.map(attach));
    return { layouts, numParameters: this.#model.numParameters, modelConfig: modelConfigOf(this.#model) };
  }

  /** Forward and backward of one step; gradients leave for the shard block by block, while backward goes on. */
  step(step: number, snapshotTo: ActorRef<CheckpointerProtocol> | undefined): RankStepped {
    const begin = performance.now();
    this.#begin(step, "step");
    const lossesNats: number[] = [];
    let numTokens = 0;
    for (let micro = 0; micro < this.#plan.accumulation; micro++) {
      scope(() => {
        const batch = this.#nextBatch(step, micro);
        numTokens += numTokensIn(batch);
        this.#randomness.microBatch = this.#init.rank * this.#plan.accumulation + micro;
        const last = micro === this.#plan.accumulation - 1;
        const forward = () => this.#job.loss(this.#model, batch);
        const weigh = (lossNats: number) => {
          checkLoss(lossNats, step, this.#init.rank);
          if (micro === 0) this.#init.shard.tell("begin", { step, learningRates: this.#learningRates() });
          return this.#progress.lossScale?.scale ?? 1;
        };
        lossesNats.push(this.#engine.forwardBackward(forward, last, weigh));
      });
    }
    if (snapshotTo !== undefined) this.#init.shard.tell("snapshot", { step, checkpointer: snapshotTo });
    const waits = { exposedMs: this.#exposedMs, gatherMs: this.#gathering.totalMs, dataMs: this.#dataMs };
    const learningRate = this.#rates()[0] ?? 0;
    return { lossesNats, learningRate, numTokens, durationMs: performance.now() - begin, waits };
  }

  /** Each optimizer's rate for this step. */
  #rates(): number[] {
    return this.#schedules.map((schedule) => schedule.lrAt(this.#progress.numUpdates + 1));
  }

  /** Rates of every group of every optimizer. */
  #learningRates(): number[] {
    const rates = this.#rates();
    return this.#optimizers.flatMap(({ groups }, index) =>
      groups.map((group) => (rates[index] ?? 0) * group.lrFactor),
    );
  }

  /** Held-out loss of this rank's share of the batches: every `numRanks`-th. */
  evaluate(step: number, requests: readonly BatchRequest[]): RankEvaluated {
    this.#begin(step, "evaluate");
    const mine = requests.filter((_, index) => index % this.#init.numRanks === this.#init.rank);
    const batches: EvaluatedBatch[] = [];
    evaluating(this.#model, () =>
      this.#engine.evaluate(() => {
        for (const request of mine) {
          scope(() => {
            const batch = this.#attach(this.#ask(request));
            const lossNats = this.#job.loss(this.#model, batch).item();
            batches.push({ lossNats, numTokens: numTokensIn(batch) });
          });
        }
      }),
    );
    return { batches };
  }

  /** What the job shows of its model. */
  sample(step: number): { text: string } {
    const { config, facts, seed } = this.#plan;
    this.#begin(step, "sample");
    const text = evaluating(this.#model, () =>
      this.#engine.evaluate(() => scope(() => this.#job.sample?.(this.#model, { config, facts, seed }))),
    );
    return { text: text ?? "" };
  }

  #begin(step: number, pass: string): void {
    this.#context.board.set(pass, "", step);
    this.#step = step;
    this.#randomness.step = step;
    this.#gathering = new BusyTime();
    this.#exposedMs = 0;
    this.#dataMs = 0;
    this.#engine.begin(pass);
  }

  /** The batch of one micro-batch of a step; those that follow are asked for before it is taken. */
  #nextBatch(step: number, micro: number): Batch {
    const { accumulation } = this.#plan;
    const index = step * accumulation + micro;
    if (this.#ahead[0]?.index !== index) this.#dropAhead();
    while (this.#ahead.length <= BATCHES_AHEAD) {
      const next = index + this.#ahead.length;
      this.#ahead.push({ index: next, batch: this.#ask(this.#trainRequest(next)) });
    }
    const batch = this.#ahead.shift()?.batch as Pending<BatchRefs>;
    return this.#attach(batch);
  }

  /** The samples of this rank's micro-batch number `index`, counted over the run. */
  #trainRequest(index: number): BatchRequest {
    const { accumulation, microBatchSize } = this.#plan;
    const step = Math.floor(index / accumulation);
    const place = (step * this.#init.numRanks + this.#init.rank) * accumulation + (index % accumulation);
    return { split: "train", position: place * microBatchSize, numSamples: microBatchSize };
  }

  #ask(request: BatchRequest): Pending<BatchRefs> {
    return this.#context.request(
      this.#init.feeder,
      "next",
      { ...request, reader: this.#name },
      { deadlineMs: this.#plan.deadlineMs },
    );
  }

  #attach(pending: Pending<BatchRefs>): Batch {
    const begin = performance.now();
    const refs = this.#context.wait(pending);
    this.#dataMs += performance.now() - begin;
    return Object.fromEntries(Object.entries(refs).map(([name, ref]) => [name, attach(ref)]));
  }

  /** The run jumped, for instance back to a checkpoint: what was asked for is taken and let go. */
  #dropAhead(): void {
    scope(() => {
      for (const { batch } of this.#ahead.splice(0)) this.#attach(batch);
    });
  }

  /** The engine's way to the shard: messages, and blocking waits that are counted as exposed communication. */
  #port(): ShardPort<Gather> {
    const { shard } = this.#init;
    const { deadlineMs } = this.#plan;
    return {
      start: (block) => ({
        startedAtMs: systemClock.now(),
        answer: this.#context.request(shard, "gather", { step: this.#step, block }, { deadlineMs }),
      }),
      wait: ({ startedAtMs, answer }) => {
        const beginMs = systemClock.now();
        const { wholeAtMs, progress } = this.#context.wait(answer);
        this.#progress = progress;
        const endMs = systemClock.now();
        this.#exposedMs += endMs - beginMs;
        this.#gathering.add(startedAtMs, wholeAtMs > beginMs ? endMs : wholeAtMs);
      },
      // In one process gathered parameters are the shards' own memory, lent: there is nothing to free.
      release: () => {},
      reduce: (block, gradient) =>
        shard.tell("reduce", { step: this.#step, block, gradient: moveRef(gradient, sentTo(shard)) }),
    };
  }
}

function checkLoss(lossNats: number, step: number, rank: number): void {
  if (Number.isFinite(lossNats)) return;
  throw new TroupeError(
    "LOSS_NOT_FINITE",
    `[step ${step}] expected a finite loss on rank ${rank}: got ${lossNats} (lower the learning rate, clip gradients, or look at the batch)`,
    { fields: { step, rank, lossNats: String(lossNats) } },
  );
}

/** What a batch counts as tokens: the elements of its first tensor. */
function numTokensIn(batch: Batch): number {
  return Object.values(batch)[0]?.numel ?? 0;
}

function modelConfigOf(model: Module): PreparedModel["modelConfig"] {
  return (model as { readonly configJson?: PreparedModel["modelConfig"] }).configJson;
}
