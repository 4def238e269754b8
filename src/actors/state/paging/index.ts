export { NOTHING_PAGED, type ParameterPaging, RemotePaging, whilePinned } from "./parameter-paging.ts";
export { ShardPaging } from "./shard-paging.ts";
