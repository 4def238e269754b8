import type { Carried } from "../../compute/collectives/index.ts";
import type { TensorRef } from "../../compute/tensor/index.ts";

/** What the members of a group of shards tell each other. */
export type ShardGroupProtocol = {
  /** One member's value under a key. */
  contribute: { in: { group: string; key: string; member: number; value: Carried | null } };
  /** A split block's memory, from the first member: the whole to read, the receiver's slice to write. */
  own: { in: { group: string; block: string; full: TensorRef; slice: TensorRef } };
};
