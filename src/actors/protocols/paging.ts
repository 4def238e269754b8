import type { Access } from "../../compute/offload/index.ts";

/**
 * How blocks whose parameters are paged are pinned in memory: asked of the shard that made a block's memory, or of any other of
 * the block's group, which passes it on.
 */
export type PagingProtocol = {
  /** Answered once the block is in memory and may be used so. */
  pin: { in: PinRequest; out: { pinned: true } };
  /** Ends such a use. */
  unpin: { in: PinRequest };
};

/** A use of a block's parameters, by the name that is the same on all ranks. Plain data. */
export interface PinRequest {
  readonly block: string;
  readonly access: Access;
}
