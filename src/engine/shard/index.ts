export type { LocalGroupProtocol } from "./local-group.ts";
export { ShardBody } from "./shard-body.ts";
export type { StepBegun, StepUpdated } from "./shard-step.ts";
