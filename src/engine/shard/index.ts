export { gatherByRows, rowLength } from "./gather-by-rows.ts";
export { Shard } from "./shard.ts";
export { groupsOfShard, meetingsOf, ShardCarriers } from "./shard-carriers.ts";
export { ShardGroups } from "./shard-groups.ts";
