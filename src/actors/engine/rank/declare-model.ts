import { cutBlocks, type Module, type TensorPlan } from "../../../compute/nn/index.ts";
import {
  type BlockPlan,
  cutStages,
  expertParallel,
  type Mesh,
  planBlocks,
  type Recompute,
  type StageCut,
  tensorParallel,
  traceUse,
} from "../../../compute/parallel/index.ts";
import type { Tensor } from "../../../compute/tensor/index.ts";
import { TroupeError } from "../../../errors/index.ts";
import type { Job, JobConfig } from "../../../job/index.ts";
import type { LayoutSettings } from "../../../job/options/index.ts";
import type { RankGroups } from "./rank-groups.ts";

/** How a model is spread over the ranks. */
export interface SpreadOptions
  extends Pick<LayoutSettings, "chunks" | "zero" | "sequenceParallel" | "overlapChunks"> {
  readonly mesh: Mesh;
  readonly rank: number;
  readonly recompute: Recompute;
}

/**
 * Makes of a model for one device what one rank has of it: sees which stage needs which parameter, splits what tensor and
 * expert parallelism split, and cuts the rest into flat blocks. The model computes no memory yet.
 * @param trial - the loss of a batch, to be run once without memory
 * @throws {TroupeError} what cannot be split as asked
 */
export function spreadModel(
  model: Module,
  plan: TensorPlan | undefined,
  groups: RankGroups,
  trial: () => Tensor,
  options: SpreadOptions,
): BlockPlan {
  const { mesh, rank, zero, recompute } = options;
  // Before anything is wrapped: a stage is found by what the plain model does.
  const stages = mesh.shape.pp > 1 ? findStages(model, trial, options) : undefined;
  const tensorGroup = groups.along("tp");
  const region = tensorGroup && tensorParallel(model, plan ?? {}, tensorGroup, options);
  const expertGroup = groups.along("ep");
  if (expertGroup !== undefined) expertParallel(model, expertGroup);
  return planBlocks(model, { zero, recompute, mesh, rank, region, ...(stages && { stages }) });
}

/**
 * @returns how a job's model is split over tensor-parallel ranks: as the job says, else as the model does
 * @throws {TroupeError} `TENSOR_PLAN` where neither says, or a plan has no rule: each rank would train the same model
 */
export function tensorPlanOf(job: Job, model: Module, config: JobConfig): TensorPlan {
  const plan = job.tensorPlan?.(config) ?? (model as { readonly tensorPlan?: TensorPlan }).tensorPlan;
  if (plan !== undefined && Object.keys(plan).length > 0) return plan;
  throw new TroupeError("TENSOR_PLAN", {
    where: "job",
    expected: "a tensor plan for several tensor-parallel ranks",
    got: plan === undefined ? "none" : "one without a rule, which splits nothing",
    hint: "give the job a tensorPlan, or the model one; whole() names a module that each rank computes alone",
  });
}

/**
 * Refuses to share the positions of a text where no rule of a plan says where they begin to be shared.
 * @throws {TroupeError} `TENSOR_PLAN`
 */
export function requireSequenceEntry(plan: TensorPlan): void {
  const begins = Object.values(plan).some(
    (rule) =>
      (rule.kind === "sequence" && rule.input === "whole") ||
      (rule.kind === "row" && rule.output === "sequence"),
  );
  if (begins) return;
  throw new TroupeError("TENSOR_PLAN", {
    where: "sequenceParallel",
    expected: 'a tensor plan with sequence({ input: "whole" }), where positions begin to be shared',
    got: `one without, of ${Object.keys(plan).join(", ")}`,
    hint: "leave --sequence-parallel out, or give the plan such rules: docs/guide/split-layers.md",
  });
}

function findStages(model: Module, trial: () => Tensor, { mesh, chunks }: SpreadOptions): StageCut {
  const { blocks, rest } = cutBlocks(model);
  const modules = blocks.map(({ module }) => module);
  const use = traceUse(model, modules, rest.values(), trial);
  const parameters = blocks.map((block) => [...block.parameters.values()]);
  return cutStages(parameters, use, { numStages: mesh.shape.pp, numChunks: chunks });
}
