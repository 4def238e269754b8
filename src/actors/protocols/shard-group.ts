import type { Carried } from "../../compute/collectives/index.ts";
import type { TensorRef } from "../../compute/tensor/index.ts";

/** Messages between the shards of a group. */
export type ShardGroupProtocol = {
  /** One member's value for a collective named `key`. */
  contribute: { in: { group: string; key: string; member: number; value: Carried | null } };
  /** A split block's memory, from the first member: `full` to read, the receiver's `slice` to write. */
  own: { in: { group: string; block: string; full: TensorRef; slice: TensorRef } };
};
