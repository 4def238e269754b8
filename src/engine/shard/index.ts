export { LocalGroups } from "./local-groups.ts";
export { Shard } from "./shard.ts";
