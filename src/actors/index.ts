export type {
  CheckpointerInit,
  CheckpointerProtocol,
  KeptState,
  SaveOrder,
  SavePart,
} from "./checkpointer.ts";
export { Conductor, type RankGroup, type RunResult, type Score } from "./conductor.ts";
export type { BatchRefs, BatchRequest, FeederInit, FeederProtocol, OpenedData } from "./feeder.ts";
export type { OffloadPlan, OffloadProtocol, StateHome } from "./offload.ts";
export type { RankInit, RankProtocol, StepOrder } from "./rank.ts";
export type { Gathered, ShardInit, ShardProtocol } from "./shard.ts";

/** The modules to spawn the cast from, and the one that every thread imports first. */
export const actorModules = {
  preload: new URL("./preload.ts", import.meta.url),
  rank: new URL("./rank.ts", import.meta.url),
  offload: new URL("./offload.ts", import.meta.url),
  shard: new URL("./shard.ts", import.meta.url),
  feeder: new URL("./feeder.ts", import.meta.url),
  checkpointer: new URL("./checkpointer.ts", import.meta.url),
} as const;
