export { gatherByRows, rowLength } from "./gather-by-rows.ts";
export { Shard } from "./shard.ts";
export { groupsOfShard, ShardCarriers } from "./shard-carriers.ts";
export { ShardGroups } from "./shard-groups.ts";
