import type { OptimizerSpec } from "../../compute/optim/index.ts";
import type { FlatBlock } from "../../compute/parallel/index.ts";
import type { TensorRef } from "../../compute/tensor/index.ts";
import type { OffloadHome } from "../../job/options/index.ts";
import type { ActorRef } from "../../runtime/index.ts";
import type { InitialState } from "./initial-state.ts";
import type { PagingProtocol } from "./paging.ts";
import type { SnapshotOrder } from "./snapshot.ts";
import type { BlockUpdate, BlockUpdated, UpdateShareProtocol } from "./update.ts";

/** The plan of an offload actor, from its shard. Plain data, but for the tensors. */
export interface OffloadPlan {
  /** Name of the run, unique in the process. */
  readonly run: string;
  readonly rank: number;
  /** Blocks whose state this actor stores. */
  readonly layouts: readonly FlatBlock[];
  /** For each block, the owned range of the parameters that the ranks read, writable; ownership passes. */
  readonly owned: readonly TensorRef[];
  readonly optimizers: readonly OptimizerSpec[];
  readonly initial: InitialState;
  readonly home: OffloadHome;
  readonly shard: ActorRef<PagingProtocol & UpdateShareProtocol>;
  readonly numThreads: number;
  /** Names of the blocks with paged parameters; the shard pins and unpins them. */
  readonly paged: readonly string[];
  /** The longest wait for one answer of the shard. */
  readonly deadlineMs: number;
  /** Delays each update on purpose. */
  readonly delayMs: number;
  /** Whether each update is reported as an activity. */
  readonly trace: boolean;
}

/**
 * Stores the optimizer state of some of a rank's blocks outside its shard and updates it there, while the shard and the
 * rank go on. It writes new parameters where the ranks read them; the answer to `update` says that it has.
 */
export type OffloadProtocol = {
  /** Loads or draws the initial state; answered when state and parameters are ready. */
  prepare: { in: OffloadPlan; out: { prepared: true } };
  /** One optimizer step on a block; ownership of the gradient passes. */
  update: { in: { update: BlockUpdate; gradient: TensorRef }; out: BlockUpdated };
  /** Copies the state after a step to the checkpointer, each block before its next update. */
  snapshot: { in: SnapshotOrder };
  /** All updates of `step` are made. */
  settle: { in: { step: number } };
};
