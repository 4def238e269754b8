export { constantIn } from "./blocks/constant-words.ts";
export {
  type FlatBlock,
  type FlatParameter,
  holdersOf,
  isUpdated,
  layoutBlock,
  memberOf,
  PARAMETER_ALIGNMENT,
  type Piece,
  piecesIn,
  type Range,
  replicas,
  type Sharing,
  SLICE_ALIGNMENT,
  sliceOf,
} from "./blocks/flat-block.ts";
export { type BlockPlan, type BlockPlanOptions, type BlockUnit, planBlocks } from "./blocks/plan-blocks.ts";
export { type BlockOptions, block, type Recompute } from "./layout/block-options.ts";
export {
  checkLayout,
  type Layout,
  type LayoutFacts,
  layoutProblems,
  nearestLayouts,
} from "./layout/layout.ts";
export { Mesh, type MeshAxis, type MeshPlace, type MeshShape } from "./layout/mesh.ts";
export {
  type PipelineAction,
  type PipelineShape,
  pipelineSchedule,
  type ScheduleName,
} from "./layout/pipeline-schedule.ts";
export { type BlockRange, cutStages, type StageCut, type TracedUse, traceUse } from "./layout/stage-cut.ts";
export { type DealtCalls, dealCalls, stageOfBlocks } from "./layout/stages.ts";
export { parseZeroLevel, type Splitting, splittingOf, type ZeroLevel, type ZeroName } from "./layout/zero.ts";
export { BlockState, keepsState, MASTER, type StateTensor, savedLayouts } from "./owned/block-state.ts";
export { ownedRange, savesPart, sendsPart } from "./owned/owned-range.ts";
export { ShardStore } from "./owned/shard-store.ts";
export type { BlockStep } from "./owned/update-cohorts.ts";
export { BlockEngine, type EngineOptions, type PassKey } from "./rank/block-engine.ts";
export type { ShardPort } from "./rank/block-gathers.ts";
export { BusyTime } from "./rank/busy-time.ts";
export { offloadedBlocks, pagedBlocks } from "./rank/offloaded-blocks.ts";
export { type GatherPort, Prefetcher, type PrefetchPlan } from "./rank/prefetch.ts";
export type { Completion } from "./rank/unit-gradients.ts";
export { StepCounter } from "./step-counter.ts";
export { BlockTape } from "./tape/block-tape.ts";
export { mapTensors } from "./tape/map-tensors.ts";
export type { Offloader } from "./tape/offloader.ts";
export {
  cutDims,
  cutParameters,
  type TensorPlace,
  tensorDivisors,
} from "./tensor-parallel/cut-parameters.ts";
export { cutExperts, expertCounts, expertParallel } from "./tensor-parallel/expert-parallel.ts";
export { type TensorParallelOptions, tensorParallel } from "./tensor-parallel/tensor-parallel.ts";
export { checkTrainedAlike } from "./trained-alike.ts";
