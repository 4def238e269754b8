import { bindRandomness, type Module, Randomness } from "../../../compute/nn/index.ts";
import type { OptimizerSpec } from "../../../compute/optim/index.ts";
import { type BlockPlan, Mesh } from "../../../compute/parallel/index.ts";
import type { Tensor } from "../../../compute/tensor/index.ts";
import { type Job, type Losses, modelOf, optimizersOf, runProgram, weighLosses } from "../../../job/index.ts";
import { disposeBatch, type Rows, type TensorBatch } from "../../../library/data/index.ts";
import { type DeclaredModel, progressIn, type RankPlan } from "../../protocols/index.ts";
import type { BatchSource } from "./batch-source.ts";
import { spreadModel, tensorPlanOf } from "./declare-model.ts";
import { noteHeldTensors } from "./held-tensors.ts";
import { LearningRates } from "./learning-rates.ts";
import { MeshRank } from "./mesh-rank.ts";
import { type RankGroupOptions, RankGroups } from "./rank-groups.ts";
import type { ReachedActors } from "./reached-actors.ts";
import { StepMetrics } from "./step-metrics.ts";
import { StepTraining } from "./step-training.ts";

/** One rank's part of a job's model: built without memory, spread over the ranks, with its training. */
export class RankModel implements Disposable {
  readonly module: Module;
  readonly randomness: Randomness;
  readonly optimizers: readonly OptimizerSpec[];
  readonly rates: LearningRates;
  readonly groups: RankGroups;
  /** Actors that its code reaches by name. */
  readonly reached: ReachedActors;
  /** Metrics that its code logs in a step. */
  readonly metrics = new StepMetrics();
  readonly blocks: BlockPlan;
  /** The parameters that steps train. */
  readonly training: StepTraining;
  /** @throws {TroupeError} `MODULE_STATE` for a tensor of its own that has changed since it was built */
  readonly checkUnchanged: () => void;
  readonly #job: Job;
  readonly #plan: RankPlan;
  /** The rank as a loss function sees it. */
  readonly #self: MeshRank;

  /**
   * @param batches - for a trial batch, if stages must be found @param joining - how it joins its groups
   * @throws {TroupeError} for parts that cannot be spread as planned
   */
  constructor(
    job: Job,
    plan: RankPlan,
    rank: number,
    batches: BatchSource,
    joining: Pick<RankGroupOptions, "status" | "look">,
    reached: ReachedActors,
  ) {
    this.reached = reached;
    this.#job = job;
    this.#plan = plan;
    const { config, facts } = plan.job;
    this.module = modelOf(job, config, facts);
    this.checkUnchanged = noteHeldTensors(this.module);
    this.randomness = new Randomness(plan.training.seed);
    this.randomness.step = plan.initial.step;
    bindRandomness(this.module, this.randomness);
    this.optimizers = optimizersOf(job, this.module, config);
    this.rates = new LearningRates(job, this.optimizers, config, facts);
    if (plan.initial.isFrozen === true)
      for (const parameter of this.module.parameters()) parameter.trainable = false;
    const { deadlineMs, devices, recompute } = plan.execution;
    const options = { generation: plan.generation, deadlineMs, devices, ...joining };
    this.groups = new RankGroups(plan.groups, plan.layout.mesh, rank, options);
    const mesh = new Mesh(plan.layout.mesh);
    const tensorPlan = mesh.shape.tp > 1 ? tensorPlanOf(job, this.module, config) : undefined;
    const trial = () => this.#trialLoss(batches);
    this.#self = new MeshRank(this.groups, rank, this.metrics, this.randomness, reached);
    this.blocks = spreadModel(this.module, tensorPlan, this.groups, trial, {
      ...plan.layout,
      recompute,
      mesh,
      rank,
    });
    const progress = progressIn(plan.initial);
    this.training = new StepTraining(this.module, this.blocks.layouts, rank, this.optimizers, progress);
  }

  get declared(): DeclaredModel {
    const { layouts } = this.blocks;
    return {
      layouts,
      saved: this.training.saved,
      parameters: [...this.module.namedState().keys()],
      numParameters: this.module.numParameters,
      modelConfig: (this.module as { readonly configJson?: DeclaredModel["modelConfig"] }).configJson,
    };
  }

  /** The job's losses of a batch, with the present parameters. */
  lossesOf(batch: TensorBatch): Losses {
    return this.#job.loss(this.module, batch, this.#self);
  }

  /** Runs one of the job's programs on a batch, with the present parameters. */
  run(program: string, batch: TensorBatch, args: unknown): Losses | Rows {
    return runProgram(this.#job, program, this.module, batch, args, this.#self);
  }

  /** Leaves its groups, and releases its own tensors. */
  [Symbol.dispose](): void {
    for (const buffer of this.module.namedBuffers().values())
      if (!buffer.persistent) buffer.unbind()?.dispose();
    this.groups[Symbol.dispose]();
  }

  #trialLoss(batches: BatchSource): Tensor {
    const numSamples = this.#plan.training.microBatchSize;
    const { batch } = batches.fetch({ split: "train", position: 0, numSamples });
    const declared = this.module.parameters().map((parameter) => ({ parameter, is: parameter.trainable }));
    try {
      return weighLosses(this.lossesOf(batch), 1);
    } finally {
      // A model may freeze parameters as it computes: this is no step, and blocks are laid out by the declarations.
      for (const { parameter, is } of declared) parameter.trainable = is;
      disposeBatch(batch);
    }
  }
}
