import { cutBlocks, type Module, type TensorPlan } from "../../../compute/nn/index.ts";
import * as parallel from "../../../compute/parallel/index.ts";
import type { Tensor } from "../../../compute/tensor/index.ts";
import { TroupeError } from "../../../errors/index.ts";
import type { Job, JobConfig } from "../../../job/index.ts";
import type { LayoutSettings } from "../../../job/options/index.ts";
import type { RankGroups } from "./rank-groups.ts";

/** Options for spreading a model over the ranks. */
export interface SpreadOptions
  extends Pick<LayoutSettings, "chunks" | "zero" | "sequenceParallel" | "overlapChunks"> {
  readonly mesh: parallel.Mesh;
  readonly rank: number;
  readonly recompute: parallel.Recompute;
}

/**
 * Turns a model for one device into one rank's part of it: finds the stage of each parameter, splits it for tensor and expert
 * parallelism, and cuts the rest into flat blocks. The model has no memory yet.
 * @param trial - the loss of a batch, run once without memory
 * @throws {TroupeError} for parts that cannot be split as asked
 */
export function spreadModel(
  model: Module,
  plan: TensorPlan | undefined,
  groups: RankGroups,
  trial: () => Tensor,
  options: SpreadOptions,
): parallel.BlockPlan {
  const { mesh, rank, zero, recompute } = options;
  // Before anything is wrapped: stages are found by running the plain model.
  const stages = mesh.shape.pp > 1 ? findStages(model, trial, options) : undefined;
  const tensorGroup = groups.along("tp");
  const region = tensorGroup && parallel.tensorParallel(model, plan ?? {}, tensorGroup, options);
  const expertGroup = groups.along("ep");
  if (expertGroup !== undefined) parallel.expertParallel(model, expertGroup);
  return parallel.planBlocks(model, { zero, recompute, mesh, rank, region, ...(stages && { stages }) });
}

/** @returns the job's tensor plan, else the model's @throws {TroupeError} `TENSOR_PLAN` if there is none, or it has no rule */
export function tensorPlanOf(job: Job, model: Module, config: JobConfig): TensorPlan {
  const plan = job.tensorPlan?.(config) ?? (model as { readonly tensorPlan?: TensorPlan }).tensorPlan;
  if (plan !== undefined && Object.keys(plan).length > 0) return plan;
  throw new TroupeError("TENSOR_PLAN", {
    where: "job",
    expected: "a tensor plan for several tensor-parallel ranks",
    got: plan === undefined ? "none" : "one without a rule, which splits nothing",
    hint: "give the job a tensorPlan, or the model one; replicated() names a module that each rank computes alone",
  });
}

/** Requires a rule that says where a plan's shared positions begin. @throws {TroupeError} `TENSOR_PLAN` */
export function requireSequenceEntry(plan: TensorPlan): void {
  const begins = Object.values(plan).some(
    (rule) =>
      (rule.kind === "sequence" && rule.input === "replicated") ||
      (rule.kind === "row" && rule.output === "sequence"),
  );
  if (begins) return;
  throw new TroupeError("TENSOR_PLAN", {
    where: "sequenceParallel",
    expected: 'a tensor plan with sequence({ input: "replicated" }), where positions begin to be shared',
    got: `one without, of ${Object.keys(plan).join(", ")}`,
    hint: "leave --sequence-parallel out, or give the plan such rules: docs/guide/split-layers.md",
  });
}

function findStages(model: Module, trial: () => Tensor, { mesh, chunks }: SpreadOptions): parallel.StageCut {
  const { blocks, rest } = cutBlocks(model);
  const modules = blocks.map(({ module }) => module);
  const use = parallel.traceUse(model, modules, rest.values(), trial);
  const parameters = blocks.map((block) => [...block.parameters.values()]);
  return parallel.cutStages(parameters, use, { numStages: mesh.shape.pp, numChunks: chunks });
}
