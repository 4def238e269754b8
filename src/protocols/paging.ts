import type { Access } from "../offload/index.ts";

/**
 * How blocks whose parameters are offloaded come and go: asked of the shard that made a block's memory, or of any other of
 * the block's group, which passes it on.
 */
export type PresenceProtocol = {
  /** Answered once the block is in memory and may be used so. */
  enter: { in: BlockUse; out: { entered: true } };
  /** Ends such a use. */
  leave: { in: BlockUse };
};

/** A use of a block's parameters, by the name that is the same on all ranks. Plain data. */
export interface BlockUse {
  readonly block: string;
  readonly access: Access;
}
