export { gatherByRows, rowLength } from "./gather-by-rows.ts";
export { Shard } from "./shard.ts";
export { ShardGroups } from "./shard-groups.ts";
