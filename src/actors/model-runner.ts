import {
  bindRandomness,
  type Module,
  Randomness,
  type RecordedTensor,
  TensorRecording,
} from "../nn/index.ts";
import { ActivationShelter } from "../offload/index.ts";
import type { OptimizerSpec, Schedule } from "../optim/index.ts";
import {
  BlockEngine,
  type BlockPlan,
  Mesh,
  type MeshPlace,
  type PipelineAction,
  pagedBlocks,
  pipelineSchedule,
} from "../parallel/index.ts";
import { type ActorContext, type ActorRef, systemClock } from "../runtime/index.ts";
import { attach, scaleStatistics, type Tensor } from "../tensor/index.ts";
import { tellActivity } from "./activity.ts";
import { BatchSource, disposeBatch } from "./batch-source.ts";
import { spreadModel, tensorPlanOf } from "./declare-model.ts";
import type { BatchRequest } from "./feeder.ts";
import { HeldTensors } from "./held-tensors.ts";
import { type Job, optimizersOf, schedulesOf } from "./job.ts";
import { MicroBatches, type StepReport } from "./micro-batches.ts";
import { ModelReadings } from "./model-readings.ts";
import { planShard } from "./plan-shard.ts";
import type { RankInit, RankProtocol, StepOrder } from "./rank.ts";
import { RankGroups } from "./rank-groups.ts";
import type { DeclaredModel, RankEvaluated, RankPlan, RankStepped } from "./rank-plan.ts";
import { recipientName } from "./recipient.ts";
import { partsOf } from "./save-plan.ts";
import { type Gather, ShardLink } from "./shard-link.ts";
import { StageLink } from "./stage-link.ts";

/** Runs a job's model step by step; computes synchronously and waits by blocking, so nothing else runs in its thread. */
export class ModelRunner {
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
  readonly #microBatches: MicroBatches;
  readonly #readings: ModelReadings;

  constructor(
    context: ActorContext<RankProtocol>,
    init: RankInit,
    plan: RankPlan,
    peers: readonly ActorRef<RankProtocol>[],
    job: Job,
  ) {
    const { rank } = init;
    const { course, deadlineMs, accumulation, microBatchSize, numChunks } = plan;
    const mesh = new Mesh(plan.mesh);
    this.#context = context;
    this.#init = init;
    this.#plan = plan;
    this.#job = job;
    this.#place = mesh.placeOf(rank);
    this.#batches = new BatchSource(
      context,
      init.feeder,
      { course, accumulation, microBatchSize, replica: this.#place.dp },
      { reader: this.#name, deadlineMs },
    );
    this.#model = job.model(plan.config, plan.facts);
    this.#held = new HeldTensors(this.#model);
    this.#randomness = new Randomness(plan.seed);
    bindRandomness(this.#model, this.#randomness);
    this.#optimizers = optimizersOf(job, this.#model, plan.config);
    this.#schedules = schedulesOf(job, this.#optimizers, plan.config);
    const { collective: line } = context.board;
    this.#groups = new RankGroups(plan.groups, plan.mesh, rank, {
      life: plan.life,
      deadlineMs,
      told: line.memory,
    });
    const tensorPlan = mesh.shape.tp > 1 ? tensorPlanOf(job, this.#model, plan.config) : undefined;
    const spread = { ...plan, mesh, rank };
    this.#blocks = spreadModel(this.#model, tensorPlan, this.#groups, () => this.#trialLoss(), spread);
    this.#actions = pipelineSchedule(plan.schedule, this.#place.pp, {
      numStages: mesh.shape.pp,
      numMicroBatches: accumulation,
      numChunks,
    });
    this.stages = new StageLink(context, peers, { mesh, rank, numChunks }, deadlineMs, (beginMs) =>
      this.#tell("wait", {}, beginMs),
    );
    const { dtype, autocast, prefetchBytes, trace } = plan;
    const { activations, parameters } = plan.offload;
    const paged = parameters === undefined ? [] : pagedBlocks(this.#blocks);
    this.#shard = new ShardLink(context, init.shard, {
      deadlineMs,
      trace,
      paged,
      // The line is one: what ranks compute together is where they wait for each other.
      line: this.#groups.isEmpty ? line : undefined,
    });
    const shelter = activations && new ActivationShelter(activations.directory, { deadlineMs });
    const engineOptions = { dtype, autocast, prefetchBytes, shelter, paged };
    this.#engine = new BlockEngine(this.#blocks, this.#shard, engineOptions);
    this.#microBatches = new MicroBatches({
      engine: this.#engine,
      batches: this.#batches,
      stages: this.stages,
      shard: this.#shard,
      randomness: this.#randomness,
      place: this.#place,
      accumulation,
      numChunks,
      lossOf: (batch) => job.loss(this.#model, batch),
    });
    this.#readings = new ModelReadings({
      plan,
      job,
      model: this.#model,
      place: this.#place,
      engine: this.#engine,
      batches: this.#batches,
      stages: this.stages,
      microBatches: this.#microBatches,
    });
  }

  get #name(): string {
    return recipientName(this.#context.self.address);
  }

  get declared(): DeclaredModel {
    return {
      layouts: this.#blocks.layouts,
      saved: partsOf(this.#blocks.layouts, this.#init.rank, this.#optimizers),
      parameters: [...this.#model.namedParameters().keys()],
      numParameters: this.#model.numParameters,
      modelConfig: modelConfigOf(this.#model),
    };
  }

  /** Has the shard lay the state out and binds the model to it. */
  async prepare(): Promise<Record<string, never>> {
    const { deadlineMs } = this.#plan;
    const shardPlan = planShard(this.#plan, this.#init.rank, this.#name, this.#blocks, this.#optimizers);
    const { fulls } = await this.#init.shard.ask("prepare", shardPlan, { deadlineMs });
    this.#engine.bind(fulls.map(attach));
    return {};
  }

  /** Forward and backward of one step; gradients leave for the shard block by block, while backward goes on. */
  step({
    step,
    snapshotTo,
    inspect = [],
    inspectUpdates = [],
    record = false,
    ledger = false,
    histograms = false,
  }: StepOrder): RankStepped {
    const begin = performance.now();
    using recording = record ? new TensorRecording() : undefined;
    this.#begin(step, "step");
    const report: StepReport = { lossesNats: [], numTokens: 0 };
    const lastForward = this.#actions.findLastIndex(({ kind }) => kind === "forward");
    this.#actions.forEach((action, index) => {
      const beginMs = systemClock.now();
      if (action.kind === "forward") this.#microBatches.forward(step, action, report);
      else this.#microBatches.backward(step, action, index === this.#actions.length - 1);
      // Rates follow from how far the optimizer has come, which the first gathers have told.
      if (index === 0)
        this.#init.shard.tell("begin", {
          step,
          learningRates: this.#learningRates(),
          inspect,
          inspectUpdates,
          ledger,
          histograms,
        });
      // Before the last gradients, so that the shards know all that they judge the step by once these are reduced.
      if (index === lastForward) this.#init.shard.tell("scored", { step, lossesNats: report.lossesNats });
      this.#tell(action.kind, { microBatch: action.microBatch }, beginMs);
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
    return this.#readings.evaluate(step, requests);
  }

  /** What the job shows of its model. */
  sample(step: number): { text: string } {
    this.#begin(step, "sample");
    return this.#readings.sample(step);
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

  #tell(activity: "wait" | "forward" | "backward", of: { microBatch?: number }, beginMs: number): void {
    if (this.#plan.trace)
      tellActivity(this.#context, activity, { step: this.#randomness.step, ...of }, beginMs);
  }

  #begin(step: number, pass: string): void {
    this.#context.board.set(pass, "", step);
    this.#randomness.step = step;
    this.#shard.begin(step);
    this.stages.waitedMs = 0;
    this.#batches.waitedMs = 0;
    this.#engine.begin(pass);
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
}

function modelConfigOf(model: Module): DeclaredModel["modelConfig"] {
  return (model as { readonly configJson?: DeclaredModel["modelConfig"] }).configJson;
}
