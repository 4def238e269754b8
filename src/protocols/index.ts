export type {
  DeclaredModel,
  EvaluatedBatch,
  OffloadSettings,
  RankEvaluated,
  RankPlan,
  RankStepped,
} from "./rank-plan.ts";
export { recipientName, sentTo } from "./recipient.ts";
export { mayLeaveOut, type ShardPlan } from "./shard-plan.ts";
