import { evaluating, loadInitializers, materializeTransient } from "../../../compute/nn/index.ts";
import { ActivationOffloader, HostActivations } from "../../../compute/offload/index.ts";
import {
  BlockEngine,
  Mesh,
  type MeshPlace,
  type PipelineAction,
  pagedBlocks,
  pipelineSchedule,
} from "../../../compute/parallel/index.ts";
import { attach, type Device, setInvariant, setTileProducts } from "../../../compute/tensor/index.ts";
import type { Job } from "../../../job/index.ts";
import { microBatchesAt } from "../../../library/data/index.ts";
import type { ActorContext, ActorRef } from "../../../runtime/index.ts";
import { reportActivity } from "../../inspect/index.ts";
import {
  type RankInit,
  type RankPlan,
  type RankProtocol,
  recipientName,
  type ShardPlan,
} from "../../protocols/index.ts";
import { BatchSource } from "./batch-source.ts";
import { RankModel } from "./rank-model.ts";
import { ReachedActors } from "./reached-actors.ts";
import { type Gather, ShardLink } from "./shard-link.ts";
import { StageLink } from "./stage-link.ts";

/** A job's model in a rank's thread, with its engine, links and data; computes synchronously and waits by blocking. */
export class ModelRunner {
  readonly rank: number;
  readonly plan: RankPlan;
  readonly job: Job;
  readonly place: MeshPlace;
  readonly feeder: RankInit["feeder"];
  readonly batches: BatchSource;
  readonly model: RankModel;
  readonly stages: StageLink;
  readonly shard: ShardLink;
  readonly engine: BlockEngine<Gather>;
  readonly context: ActorContext<RankProtocol>;
  /** By the number of micro-batches. */
  readonly #schedules = new Map<number, readonly PipelineAction[]>();

  constructor(
    context: ActorContext<RankProtocol>,
    { rank, shard, feeder }: RankInit,
    plan: RankPlan,
    peers: readonly ActorRef<RankProtocol>[],
    job: Job,
  ) {
    const { chunks: numChunks } = plan.layout;
    const { deadlineMs, devices } = plan.execution;
    const mesh = new Mesh(plan.layout.mesh);
    this.rank = rank;
    this.plan = plan;
    this.job = job;
    this.context = context;
    this.feeder = feeder;
    this.place = mesh.placeOf(rank);
    const { generation } = plan;
    const reader = { owner: this.#name, numReaders: mesh.shape.tp * mesh.shape.pp, generation };
    const device = devices[rank] as Device;
    const dealing = { ...plan.training, replica: this.place.dp };
    setInvariant(plan.precision.invariant);
    setTileProducts(plan.execution.graph === "fast");
    this.batches = new BatchSource(context, feeder, dealing, { ...reader, deadlineMs, device });
    // A rank that is to stop does not wait for others to join.
    const joining = { status: context.board.collective.memory, look: () => context.poll() };
    this.model = new RankModel(job, plan, rank, this.batches, joining, new ReachedActors(context));
    const position = { mesh, rank, numChunks };
    const carrier = this.model.groups.stages;
    const onWaited = (beginMs: number) => this.report("wait", undefined, beginMs);
    this.stages = new StageLink(context, peers, position, carrier, deadlineMs, onWaited);
    this.shard = shardLinkOf(context, shard, plan, this.model);
    this.engine = engineOf(plan, this.model, this.shard);
  }

  get #name(): string {
    return recipientName(this.context.self.address);
  }

  /** Makes the shard lay the state out and binds the model to it. */
  async prepare(): Promise<Record<string, never>> {
    const { deadlineMs } = this.plan.execution;
    const { module } = this.model;
    const { fulls } = await this.shard.ref.ask("prepare", this.#shardPlan(), { deadlineMs });
    this.engine.bind(fulls.map(attach));
    const transient = [...module.namedBuffers().values()].filter(({ persistent }) => !persistent);
    await loadInitializers(transient.map(({ init }) => init));
    materializeTransient(module, this.plan.training.seed);
    return {};
  }

  #shardPlan(): ShardPlan {
    const { groups, execution, precision, training, anomalies, telemetry, initial, generation } = this.plan;
    const { blocks, optimizers } = this.model;
    const rounding = precision.rounding === "stochastic" ? { seed: training.seed } : undefined;
    const { optimizer, parameters } = this.plan.offload;
    const mesh = new Mesh(this.plan.layout.mesh);
    const modelParallel = mesh.groupOf("mp", this.rank);
    const together = [...new Set([...modelParallel, ...mesh.groupOf("ep", this.rank)])];
    const windowBytes = execution.prefetchBytes;
    return {
      layouts: blocks.layouts,
      optimizers: optimizers.map((spec) => ({ ...spec, rounding })),
      peers: { groups, replicas: mesh.groupOf("dp", this.rank), modelParallel, together },
      execution,
      precision,
      training,
      numMicroBatches: training.accumulation * mesh.shape.dp,
      anomalies,
      offload: {
        optimizer,
        parameters: parameters && { ...parameters, blocks: pagedBlocks(blocks), windowBytes },
      },
      telemetry,
      initial,
      generation,
      reader: this.#name,
    };
  }

  /** Begins work on the parameters of `step` updates; passes of one name need the same blocks in the same order. */
  begin(step: number, pass: string): void {
    this.context.board.set(pass, "", step);
    this.model.randomness.step = step;
    this.shard.begin(step);
    this.stages.waitedMs = 0;
    this.batches.waitedMs = 0;
    this.engine.begin(pass);
  }

  numMicroBatches(step: number): number {
    const { sampler, accumulation } = this.plan.training;
    return microBatchesAt(sampler, accumulation, step);
  }

  /** This stage's actions for that many micro-batches, in order. */
  schedule(numMicroBatches: number): readonly PipelineAction[] {
    const { mesh, chunks: numChunks, schedule } = this.plan.layout;
    const shape = { numStages: mesh.pp, numMicroBatches, numChunks };
    const actions = this.#schedules.get(numMicroBatches) ?? pipelineSchedule(schedule, this.place.pp, shape);
    this.#schedules.set(numMicroBatches, actions);
    return actions;
  }

  /** Whether this rank reports its replica's losses, if it computes them: tensor-parallel neighbours compute the same. */
  get reportsLosses(): boolean {
    return this.place.tp === 0;
  }

  /** Reports an activity since `beginMs`, if the run is traced. @param microBatch - its micro-batch, if it has one */
  report(activity: "wait" | "forward" | "backward", microBatch: number | undefined, beginMs: number): void {
    if (!this.plan.telemetry.trace) return;
    const of = microBatch === undefined ? {} : { microBatch };
    reportActivity(this.context, activity, { step: this.model.randomness.step, ...of }, beginMs);
  }

  /** Runs `body` on the present parameters without recording. */
  evaluateBody<R>(body: () => R): R {
    return evaluating(this.model.module, () => this.engine.evaluate(body));
  }

  /** Does the same between steps: on the parameters of `step` updates. */
  measure<R>(step: number, body: () => R): R {
    this.begin(step, "evaluate");
    return this.evaluateBody(body);
  }
}

function shardLinkOf(
  context: ActorContext<RankProtocol>,
  shard: RankInit["shard"],
  { execution, telemetry, offload }: RankPlan,
  { groups, blocks }: RankModel,
): ShardLink {
  return new ShardLink(context, shard, {
    deadlineMs: execution.deadlineMs,
    trace: telemetry.trace,
    paged: new Set(offload.parameters === undefined ? [] : pagedBlocks(blocks)),
    // There is one line, and the groups' collectives have it if there are any: there the ranks wait for each other.
    line: groups.isEmpty ? context.board.collective : undefined,
  });
}

function engineOf(plan: RankPlan, { blocks, randomness }: RankModel, shard: ShardLink): BlockEngine<Gather> {
  const { weights: dtype, autocast } = plan.precision;
  const { prefetchBytes, deadlineMs, graph } = plan.execution;
  const { activations, parameters } = plan.offload;
  const paged = parameters === undefined ? [] : pagedBlocks(blocks);
  const offloader =
    activations &&
    (activations.kind === "host"
      ? new HostActivations()
      : new ActivationOffloader(activations.directory, { deadlineMs }));
  const [programs, fast] = [graph !== "off", graph === "fast"];
  const choices = { dtype, autocast, prefetchBytes, randomness, offloader, paged, programs, fast };
  return new BlockEngine(blocks, shard, choices);
}
