import type { Access } from "../../compute/offload/index.ts";

/** Pins blocks with paged parameters in memory, by the shard that allocated the memory or any other of its group. */
export type PagingProtocol = {
  /** Answered once the block is in memory and may be accessed. */
  pin: { in: PinRequest; out: { pinned: true } };
  /** Ends one such access. */
  unpin: { in: PinRequest };
};

/** One use of a block's parameters; `block` is its name, the same on all ranks. Plain data. */
export interface PinRequest {
  readonly block: string;
  readonly access: Access;
}
