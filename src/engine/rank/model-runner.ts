import { reportActivity } from "../../inspect/index.ts";
import type { Job } from "../../job/index.ts";
import { type RecordedTensor, TensorRecording } from "../../nn/index.ts";
import { ActivationOffloader } from "../../offload/index.ts";
import {
  BlockEngine,
  Mesh,
  type MeshPlace,
  type PipelineAction,
  pagedBlocks,
  pipelineSchedule,
} from "../../parallel/index.ts";
import {
  type BatchRequest,
  type DeclaredModel,
  type RankEvaluated,
  type RankInit,
  type RankPlan,
  type RankProtocol,
  type RankStepped,
  recipientName,
  type StepOrder,
} from "../../protocols/index.ts";
import { type ActorContext, type ActorRef, systemClock } from "../../runtime/index.ts";
import { attach, scaleStatistics } from "../../tensor/index.ts";
import { BatchSource } from "./batch-source.ts";
import { MicroBatches, type StepReport } from "./micro-batches.ts";
import { ModelReadings } from "./model-readings.ts";
import { planShard } from "./plan-shard.ts";
import { RankModel } from "./rank-model.ts";
import { type Gather, ShardLink } from "./shard-link.ts";
import { StageLink } from "./stage-link.ts";

/** Runs a job's model step by step; computes synchronously and waits by blocking, so nothing else runs in its thread. */
export class ModelRunner {
  readonly stages: StageLink;
  readonly #context: ActorContext<RankProtocol>;
  readonly #init: RankInit;
  readonly #plan: RankPlan;
  readonly #place: MeshPlace;
  readonly #model: RankModel;
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
    const { sampler, accumulation, microBatchSize } = plan.training;
    const { numChunks, schedule } = plan.layout;
    const { deadlineMs, prefetchBytes } = plan.execution;
    const { collective: line } = context.board;
    const mesh = new Mesh(plan.layout.mesh);
    this.#context = context;
    this.#init = init;
    this.#plan = plan;
    this.#place = mesh.placeOf(rank);
    this.#batches = new BatchSource(
      context,
      init.feeder,
      { sampler, accumulation, microBatchSize, replica: this.#place.dp },
      { reader: this.#name, deadlineMs },
    );
    this.#model = new RankModel(job, plan, rank, this.#batches, line.memory);
    const { blocks, groups, module, randomness } = this.#model;
    this.#actions = pipelineSchedule(schedule, this.#place.pp, {
      numStages: mesh.shape.pp,
      numMicroBatches: accumulation,
      numChunks,
    });
    this.stages = new StageLink(context, peers, { mesh, rank, numChunks }, deadlineMs, (beginMs) =>
      this.#tell("wait", {}, beginMs),
    );
    const { weights: dtype, autocast } = plan.precision;
    const { trace } = plan.telemetry;
    const { activations, parameters } = plan.offload;
    const paged = parameters === undefined ? [] : pagedBlocks(blocks);
    this.#shard = new ShardLink(context, init.shard, {
      deadlineMs,
      trace,
      paged,
      // The line is one: what ranks compute together is where they wait for each other.
      line: groups.isEmpty ? line : undefined,
    });
    const offloader = activations && new ActivationOffloader(activations.directory, { deadlineMs });
    const engineOptions = { dtype, autocast, prefetchBytes, randomness, offloader, paged };
    this.#engine = new BlockEngine(blocks, this.#shard, engineOptions);
    this.#microBatches = new MicroBatches({
      engine: this.#engine,
      batches: this.#batches,
      stages: this.stages,
      shard: this.#shard,
      randomness,
      place: this.#place,
      accumulation,
      numChunks,
      lossesOf: (batch) => this.#model.lossesOf(batch),
    });
    this.#readings = new ModelReadings({
      plan,
      job,
      model: module,
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

  /** What the conductor learns of the model. */
  get declared(): DeclaredModel {
    return this.#model.declared;
  }

  /** Has the shard lay the state out and binds the model to it. */
  async prepare(): Promise<Record<string, never>> {
    const { deadlineMs } = this.#plan.execution;
    const { blocks, optimizers } = this.#model;
    const shardPlan = planShard(this.#plan, this.#init.rank, this.#name, blocks, optimizers);
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
    const report: StepReport = { lossesNats: [], namedLosses: [], numSamples: 0, numTokens: undefined };
    const lastForward = this.#actions.findLastIndex(({ kind }) => kind === "forward");
    this.#actions.forEach((action, index) => {
      const beginMs = systemClock.now();
      if (action.kind === "forward") this.#microBatches.forward(step, action, report);
      else this.#microBatches.backward(step, action, index === this.#actions.length - 1);
      // Rates follow from how far the optimizer has come, which the first gathers have told.
      if (index === 0)
        this.#init.shard.tell("begin", {
          step,
          learningRates: this.#model.rates.ofGroups(this.#update),
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
    if (step === this.#plan.initial.step) this.#model.checkUnchanged();
    if (snapshotTo !== undefined) this.#init.shard.tell("snapshot", { step, checkpointer: snapshotTo });
    const { exposedMs, gatherMs } = this.#shard.measured;
    const waits = {
      exposedMs: exposedMs + this.stages.waitedMs,
      gatherMs: gatherMs + this.stages.waitedMs,
      dataMs: this.#batches.waitedMs,
    };
    const learningRate = this.#model.rates.told(this.#update);
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
    this.#model[Symbol.dispose]();
  }

  /** Number of the update that this step is to make, skipped ones left out. */
  get #update(): number {
    return this.#shard.progress.numUpdates + 1;
  }

  #tell(activity: "wait" | "forward" | "backward", of: { microBatch?: number }, beginMs: number): void {
    if (this.#plan.telemetry.trace)
      reportActivity(this.#context, activity, { step: this.#model.randomness.step, ...of }, beginMs);
  }

  #begin(step: number, pass: string): void {
    this.#context.board.set(pass, "", step);
    this.#model.randomness.step = step;
    this.#shard.begin(step);
    this.stages.waitedMs = 0;
    this.#batches.waitedMs = 0;
    this.#engine.begin(pass);
  }
}
