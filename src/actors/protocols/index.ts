export type * from "./checkpointer.ts";
export type {
  BatchOrder,
  BatchRequest,
  BegunData,
  DataOrder,
  DealtBatch,
  EvaluationName,
  FeederInit,
  FeederProtocol,
  OpenedData,
  RowRefs,
} from "./feeder.ts";
export type { Beginning, InitialState, InitialStateOf } from "./initial-state.ts";
export type * from "./inspection.ts";
export type * from "./offload.ts";
export type * from "./paging.ts";
export type {
  DeclaredModel,
  EvaluatedBatch,
  LoopLeft,
  MetricSum,
  RankEvaluated,
  RankInit,
  RankProtocol,
  RankStepped,
  StepOrder,
} from "./rank.ts";
export type { RankPlan } from "./rank-plan.ts";
export * from "./recipient.ts";
export type { HostNode, Relay, Relayed } from "./relay.ts";
export type * from "./run.ts";
export type * from "./save-plan.ts";
export type * from "./shard.ts";
export type * from "./shard-group.ts";
export type { ShardPlan } from "./shard-plan.ts";
export type * from "./slice-writer.ts";
export type { SavePart, SnapshotOrder, SnapshotProtocol } from "./snapshot.ts";
export type * from "./stage.ts";
export type { BlockUpdate, BlockUpdated } from "./update.ts";
