export { ShardBody } from "./shard-body.ts";
