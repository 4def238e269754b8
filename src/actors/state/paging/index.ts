export { NOTHING_PAGED, type ParameterPaging, remotePaging, whilePinned } from "./parameter-paging.ts";
export { ShardPaging } from "./shard-paging.ts";
