import { evaluating, loadInitializers, materializeTransient } from "../../../compute/nn/index.ts";
import { ActivationOffloader, HostActivations } from "../../../compute/offload/index.ts";
import {
  BlockEngine,
  Mesh,
  type MeshPlace,
  type Offloader,
  type PipelineAction,
  pagedBlocks,
  pipelineSchedule,
} from "../../../compute/parallel/index.ts";
import { attach, type Device } from "../../../compute/tensor/index.ts";
import type { Job } from "../../../job/index.ts";
import type { OffloadHome } from "../../../job/options/index.ts";
import { microBatchesAt, type TensorBatch } from "../../../library/data/index.ts";
import type { ActorContext, ActorRef } from "../../../runtime/index.ts";
import { reportActivity } from "../../inspect/index.ts";
import {
  type BatchRequest,
  type DeclaredModel,
  type RankEvaluated,
  type RankInit,
  type RankPlan,
  type RankProtocol,
  recipientName,
  type StepOrder,
} from "../../protocols/index.ts";
import { BatchSource } from "./batch-source.ts";
import { GrantedStep, type StepParts } from "./granted-step.ts";
import { MicroBatches } from "./micro-batches.ts";
import { ModelReadings } from "./model-readings.ts";
import { planShard } from "./plan-shard.ts";
import { PredictionLink } from "./prediction-link.ts";
import { RankModel } from "./rank-model.ts";
import { type Gather, ShardLink } from "./shard-link.ts";
import { StageLink } from "./stage-link.ts";

/** A job's model in a rank's thread, and what it is trained and read with; computes synchronously and waits by blocking. */
export class ModelRunner {
  readonly rank: number;
  readonly plan: RankPlan;
  readonly model: RankModel;
  readonly stages: StageLink;
  readonly #context: ActorContext<RankProtocol>;
  readonly #init: RankInit;
  readonly #place: MeshPlace;
  readonly #shard: ShardLink;
  readonly #engine: BlockEngine<Gather>;
  readonly #batches: BatchSource;
  readonly #parts: StepParts;
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
    const { chunks: numChunks, schedule } = plan.layout;
    const { deadlineMs, prefetchBytes, devices } = plan.execution;
    const device = devices[rank] as Device;
    const { collective: line } = context.board;
    const mesh = new Mesh(plan.layout.mesh);
    this.#context = context;
    this.#init = init;
    this.rank = rank;
    this.plan = plan;
    this.#place = mesh.placeOf(rank);
    this.#batches = new BatchSource(
      context,
      init.feeder,
      { sampler, accumulation, microBatchSize, replica: this.#place.dp },
      { owner: this.#name, numReaders: mesh.shape.tp * mesh.shape.pp, deadlineMs, device },
    );
    this.model = new RankModel(job, plan, rank, this.#batches, line.memory);
    const { blocks, groups, randomness } = this.model;
    const numMicroBatches = (step: number) => microBatchesAt(sampler, accumulation, step);
    const schedules = new Map<number, readonly PipelineAction[]>();
    const actionsAt = (step: number) => {
      const count = numMicroBatches(step);
      const shape = { numStages: mesh.shape.pp, numMicroBatches: count, numChunks };
      const actions = schedules.get(count) ?? pipelineSchedule(schedule, this.#place.pp, shape);
      schedules.set(count, actions);
      return actions;
    };
    this.stages = new StageLink(
      context,
      peers,
      { mesh, rank, numChunks },
      groups.stages,
      deadlineMs,
      (beginMs) => this.#report("wait", {}, beginMs),
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
    const offloader = activations && offloaderTo(activations, deadlineMs);
    const engineOptions = { dtype, autocast, prefetchBytes, randomness, offloader, paged };
    this.#engine = new BlockEngine(blocks, this.#shard, engineOptions);
    const microBatches = new MicroBatches({
      engine: this.#engine,
      batches: this.#batches,
      stages: this.stages,
      shard: this.#shard,
      randomness,
      place: this.#place,
      microBatchesAt: numMicroBatches,
      numChunks,
      metrics: this.model.metrics,
    });
    this.#parts = {
      plan,
      place: this.#place,
      model: this.model,
      numMicroBatches,
      actionsAt,
      engine: this.#engine,
      shard: this.#shard,
      shardRef: init.shard,
      stages: this.stages,
      batches: this.#batches,
      microBatches,
      report: (activity, of, beginMs) => this.#report(activity, of, beginMs),
    };
    this.#readings = new ModelReadings({
      plan,
      job,
      model: this.model,
      place: this.#place,
      engine: this.#engine,
      batches: this.#batches,
      stages: this.stages,
      microBatches,
      predictions: new PredictionLink(context, init.feeder, deadlineMs),
    });
  }

  get #name(): string {
    return recipientName(this.#context.self.address);
  }

  /** What the conductor learns of the model. */
  get declared(): DeclaredModel {
    return this.model.declared;
  }

  /** Has the shard lay the state out and binds the model to it. */
  async prepare(): Promise<Record<string, never>> {
    const { deadlineMs } = this.plan.execution;
    const { blocks, optimizers } = this.model;
    const shardPlan = planShard(this.plan, this.#init.rank, this.#name, blocks, optimizers);
    const { fulls } = await this.#init.shard.ask("prepare", shardPlan, { deadlineMs });
    this.#engine.bind(fulls.map(attach));
    const { module } = this.model;
    const transient = [...module.namedBuffers().values()].filter(({ persistent }) => !persistent);
    await loadInitializers(transient.map(({ init }) => init));
    materializeTransient(module, this.plan.training.seed);
    return {};
  }

  /** A step is granted: what follows is of it, until its end. */
  begin(order: StepOrder): GrantedStep {
    this.#begin(order.step, "step");
    return new GrantedStep(this.#parts, order);
  }

  /** Runs `body` on the present parameters without recording. */
  evaluateBody<R>(body: () => R): R {
    return evaluating(this.model.module, () => this.#engine.evaluate(body));
  }

  /** The same between the steps: on the parameters that `step` updates have made. */
  measure<R>(step: number, body: () => R): R {
    this.#begin(step, "evaluate");
    return this.evaluateBody(body);
  }

  /** @returns samples of any split; the caller's to dispose */
  read(request: BatchRequest): TensorBatch {
    return this.#batches.fetch(request).batch;
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

  /** The loop has returned after `step` steps, and makes no more. */
  left(step: number): void {
    this.#init.shard.tell("left", { step });
  }

  /** Leaves the groups that it computes with. */
  leave(): void {
    this.model[Symbol.dispose]();
  }

  #report(activity: "wait" | "forward" | "backward", of: { microBatch?: number }, beginMs: number): void {
    if (this.plan.telemetry.trace)
      reportActivity(this.#context, activity, { step: this.model.randomness.step, ...of }, beginMs);
  }

  #begin(step: number, pass: string): void {
    this.#context.board.set(pass, "", step);
    this.model.randomness.step = step;
    this.#shard.begin(step);
    this.stages.waitedMs = 0;
    this.#batches.waitedMs = 0;
    this.#engine.begin(pass);
  }
}

function offloaderTo(home: OffloadHome, deadlineMs: number): Offloader {
  return home.kind === "host"
    ? new HostActivations()
    : new ActivationOffloader(home.directory, { deadlineMs });
}
