import type { OptimizerSpec } from "../../compute/optim/index.ts";
import type { FlatBlock } from "../../compute/parallel/index.ts";
import type { TensorRef } from "../../compute/tensor/index.ts";
import type { OffloadHome } from "../../job/options/index.ts";
import type { ActorRef } from "../../runtime/index.ts";
import type { InitialState } from "./initial-state.ts";
import type { PagingProtocol } from "./paging.ts";
import type { SnapshotOrder } from "./snapshot.ts";
import type { BlockUpdate, BlockUpdated, UpdateShareProtocol } from "./update.ts";

/** What an offload actor takes over from its shard. Plain data, but for the tensors. */
export interface OffloadPlan {
  /** Names the run in the process. */
  readonly run: string;
  readonly rank: number;
  /** Of the blocks whose state is kept here. */
  readonly layouts: readonly FlatBlock[];
  /** Of each, the owned range of the parameters that the ranks read, writable; ownership passes. */
  readonly owned: readonly TensorRef[];
  readonly optimizers: readonly OptimizerSpec[];
  readonly initial: InitialState;
  readonly home: OffloadHome;
  readonly shard: ActorRef<PagingProtocol & UpdateShareProtocol>;
  readonly numThreads: number;
  /** Names of the blocks whose parameters are in memory only while they are used, which the shard sees to. */
  readonly paged: readonly string[];
  /** How long one answer of the shard may take. */
  readonly deadlineMs: number;
  /** Each update is put off for so long, on purpose. */
  readonly delayMs: number;
  /** Whether to tell of each update. */
  readonly trace: boolean;
}

/**
 * Keeps the optimizers' state of some of a rank's blocks outside its shard and updates it there, while the shard and the
 * rank go on. New parameters are written where the ranks read them; the answer says when they are.
 */
export type OffloadProtocol = {
  /** Answered when state and parameters are those of the run's beginning. */
  prepare: { in: OffloadPlan; out: { sizeBytes: number } };
  /** One optimizer step on a block; ownership of the gradient passes. */
  update: { in: { update: BlockUpdate; gradient: TensorRef }; out: BlockUpdated };
  /** Copies the state that follows a step to the checkpointer, each block before its next update. */
  snapshot: { in: SnapshotOrder };
  /** All updates of `step` are made. */
  settle: { in: { step: number } };
};
