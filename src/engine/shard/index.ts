export { Shard } from "./shard.ts";
export { ShardGroups } from "./shard-groups.ts";
