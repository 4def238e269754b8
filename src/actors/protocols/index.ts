export type {
  CheckpointerInit,
  CheckpointerProtocol,
  KeptState,
  RestoreRequest,
  Saved,
  SaveOrder,
} from "./checkpointer.ts";
export type {
  BatchOrder,
  BatchRequest,
  BegunData,
  CallBatch,
  DataOrder,
  DealtBatch,
  EvaluationName,
  FeederInit,
  FeederProtocol,
  OpenedData,
  RowRefs,
} from "./feeder.ts";
export { splitOf } from "./feeder.ts";
export type { Beginning, InitialState, InitialStateOf } from "./initial-state.ts";
export type {
  Activity,
  HeldMemory,
  HistogramBody,
  HistogramPart,
  InspectedPart,
  InspectedUpdate,
  SaveProgress,
} from "./inspection.ts";
export type { OffloadPlan, OffloadProtocol } from "./offload.ts";
export type { PagingProtocol, PinRequest } from "./paging.ts";
export type {
  DeclaredModel,
  EvaluatedBatch,
  LoopLeft,
  MetricSum,
  ProgramOrder,
  RankAccumulated,
  RankEvaluated,
  RankInit,
  RankProtocol,
  RankStepped,
  StepOrder,
  UpdateOrder,
} from "./rank.ts";
export type { RankPlan } from "./rank-plan.ts";
export { recipientName, sentTo } from "./recipient.ts";
export type { HostNode, Relay, Relayed } from "./relay.ts";
export type { RankGroup, RunResult, RunSchedule, SavingRules } from "./run.ts";
export type { HeldRun, PartPlan, SavedShare, SavePlan, SentEntry, StateEntry } from "./save-plan.ts";
export type {
  Gathered,
  Joined,
  ShardInit,
  ShardProtocol,
  StepBegun,
  StepScored,
  StepUpdated,
} from "./shard.ts";
export type { ShardGroupProtocol } from "./shard-group.ts";
export type { ShardPlan } from "./shard-plan.ts";
export type {
  SliceOrder,
  SliceWriter,
  SliceWriterInit,
  SliceWriterProtocol,
  SpreadSave,
  WrittenShare,
} from "./slice-writer.ts";
export type { SavePart, SnapshotOrder, SnapshotProtocol } from "./snapshot.ts";
export type { StageLinkProtocol } from "./stage.ts";
export type { BlockUpdate, BlockUpdated } from "./update.ts";
