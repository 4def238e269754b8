export { BlockEngine, type EngineOptions, type PassKey } from "./block-engine.ts";
export type { ShardPort } from "./block-gathers.ts";
export { type BlockOptions, block, type Recompute } from "./block-options.ts";
export { BlockState, keepsState, MASTER, type StateTensor, savedLayouts } from "./block-state.ts";
export { BlockTape } from "./block-tape.ts";
export { BusyTime } from "./busy-time.ts";
export { constantIn } from "./constant-words.ts";
export { Exchange } from "./exchange.ts";
export { cutExperts, expertCounts, expertParallel } from "./expert-parallel.ts";
export {
  type FlatBlock,
  type FlatParameter,
  isUpdated,
  layoutBlock,
  memberOf,
  PARAMETER_ALIGNMENT,
  type Piece,
  piecesIn,
  type Range,
  ranksOfWhole,
  replicas,
  type Sharing,
  SLICE_ALIGNMENT,
  sliceOf,
} from "./flat-block.ts";
export { GradientBuckets } from "./gradient-buckets.ts";
export { firstNotFinite, sumOfSquares } from "./gradient-norm.ts";
export {
  checkLayout,
  type Layout,
  type LayoutFacts,
  layoutProblems,
  nearestLayouts,
  PLAIN_LAYOUT,
} from "./layout.ts";
export { mapTensors } from "./map-tensors.ts";
export { Mesh, type MeshAxis, type MeshPlace, type MeshShape } from "./mesh.ts";
export { offloadedBlocks, pagedBlocks } from "./offloaded-blocks.ts";
export type { Offloader } from "./offloader.ts";
export { ownedRange, savesPart, sendsPart } from "./owned-range.ts";
export {
  describeSchedule,
  maxInFlight,
  type PipelineAction,
  type PipelineShape,
  pipelineSchedule,
  type ScheduleName,
} from "./pipeline-schedule.ts";
export {
  type BlockPlan,
  type BlockPlanOptions,
  type BlockUnit,
  planBlocks,
  ROOT_UNIT,
} from "./plan-blocks.ts";
export { type GatherPort, Prefetcher, type PrefetchPlan } from "./prefetch.ts";
export { ShardStore } from "./shard-store.ts";
export {
  type BlockRange,
  cutStages,
  rangesOf,
  type StageCut,
  type TracedUse,
  traceUse,
  wholeModel,
} from "./stage-cut.ts";
export { StageEnd, StagePass } from "./stage-pass.ts";
export { stageOfBlocks } from "./stages.ts";
export { StepBarrier } from "./step-barrier.ts";
export {
  cutDims,
  cutParameters,
  type TensorPlace,
  tensorDivisors,
} from "./tensor-parallel/cut-parameters.ts";
export { type TensorParallelOptions, tensorParallel } from "./tensor-parallel/tensor-parallel.ts";
export type { Completion } from "./unit-gradients.ts";
export type { BlockStep } from "./update-cohorts.ts";
export { parseZeroLevel, type Splitting, splittingOf, type ZeroLevel, type ZeroName } from "./zero.ts";
