export { constantIn, wordsOf } from "./blocks/constant-words.ts";
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
export * from "./layout/layout.ts";
export * from "./layout/mesh.ts";
export * from "./layout/pipeline-schedule.ts";
export { type BlockRange, cutStages, type StageCut, type TracedUse, traceUse } from "./layout/stage-cut.ts";
export * from "./layout/stages.ts";
export * from "./layout/zero.ts";
export * from "./owned/block-state.ts";
export { ownedRange, savesPart, sendsPart } from "./owned/owned-range.ts";
export * from "./owned/shard-store.ts";
export type { BlockStep } from "./owned/update-cohorts.ts";
export * from "./rank/block-engine.ts";
export type { ShardPort } from "./rank/block-gathers.ts";
export * from "./rank/busy-time.ts";
export * from "./rank/offloaded-blocks.ts";
export * from "./rank/prefetch.ts";
export type { Completion } from "./rank/unit-gradients.ts";
export * from "./step-counter.ts";
export { BlockTape } from "./tape/block-tape.ts";
export * from "./tape/map-tensors.ts";
export type * from "./tape/offloader.ts";
export type { BlockCalls } from "./tape/program-call.ts";
export type { RecordedProgram, Unrecorded } from "./tape/programs.ts";
export * from "./tensor-parallel/cut-parameters.ts";
export * from "./tensor-parallel/expert-parallel.ts";
export * from "./tensor-parallel/tensor-parallel.ts";
export * from "./trained-alike.ts";
