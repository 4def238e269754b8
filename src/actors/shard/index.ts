export { gatherByRows, rowLength } from "./group/gather-by-rows.ts";
export { groupsOfShard } from "./group/groups-of-shard.ts";
export { connectedGroups, ShardCarriers } from "./group/shard-carriers.ts";
export { ShardGroups } from "./group/shard-groups.ts";
export { Shard } from "./shard.ts";
