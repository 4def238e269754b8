import type { TensorRef } from "../tensor/index.ts";

/** What the shards of one process tell each other. */
export type LocalGroupProtocol = {
  /** One rank's value of a collective. */
  contribute: { in: { group: string; key: string; member: number; value: TensorRef | null } };
  /** A split block's memory, from the first member: the whole to read, the receiver's slice to write. */
  own: { in: { group: string; block: string; full: TensorRef; slice: TensorRef } };
};
