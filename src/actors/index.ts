export { isActivity } from "./activity.ts";
export type { CheckpointerInit, CheckpointerProtocol, KeptState, Saved } from "./checkpointer.ts";
export { Conductor, type RankGroup, type RunResult, type Score } from "./conductor.ts";
export { spreadModel, tensorPlanOf } from "./declare-model.ts";
export type { BatchRequest, FeederInit, FeederProtocol, OpenedData } from "./feeder.ts";
export { formatSummary } from "./format-summary.ts";
export type { HeldMemory } from "./held-memory.ts";
export type { InitialState } from "./initial-state.ts";
export { matchesName } from "./inspected-part.ts";
export { type InspectedUpdate, summarizeUpdates, type UpdateSummary } from "./inspected-update.ts";
export { type Findings, Inspections } from "./inspections.ts";
export {
  type ConfigValue,
  defineJob,
  type Job,
  type JobConfig,
  type JobDefinition,
  loadJob,
  optimizersOf,
  type SampleContext,
  schedulesOf,
  type TrainingPlan,
} from "./job.ts";
export type { OffloadProtocol } from "./offload.ts";
export type { RankInit, RankProtocol } from "./rank.ts";
export { type GroupPlan, groupNamesOf } from "./rank-groups.ts";
export type { DeclaredModel, OffloadSettings, RankPlan } from "./rank-plan.ts";
export { recipientName } from "./recipient.ts";
export type { SavingRules } from "./saving.ts";
export type { ShardInit, ShardProtocol } from "./shard.ts";
export type { Slowdown } from "./shard-plan.ts";
export type { TensorSummary } from "./tensor-summary.ts";
export { isSaveProgress } from "./write-parts.ts";

/** The modules to spawn the cast from, and the one that every thread imports first. */
export const actorModules = {
  preload: new URL("./preload.ts", import.meta.url),
  rank: new URL("./rank.ts", import.meta.url),
  offload: new URL("./offload.ts", import.meta.url),
  shard: new URL("./shard.ts", import.meta.url),
  feeder: new URL("./feeder.ts", import.meta.url),
  checkpointer: new URL("./checkpointer.ts", import.meta.url),
} as const;
