export { gatherByRows, rowLength } from "./gather-by-rows.ts";
export { groupsOfShard } from "./groups-of-shard.ts";
export { Shard } from "./shard.ts";
export { meetingsOf, ShardCarriers } from "./shard-carriers.ts";
export { ShardGroups } from "./shard-groups.ts";
