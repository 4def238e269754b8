import type { AnomalyRules } from "../anomalies/index.ts";
import type { GroupPlan } from "../collectives/index.ts";
import type { ClipRule, LossScaleRule, OptimizerSpec } from "../optim/index.ts";
import type { FlatBlock } from "../parallel/index.ts";
import type { DType } from "../tensor/index.ts";
import type { InitialState } from "./initial-state.ts";
import type { StateHome } from "./offload.ts";

/** What a shard owns and whom it works with. */
export interface ShardPlan {
  readonly layouts: readonly FlatBlock[];
  /** Ranks that hold the same part of the model, in order, this one included. */
  readonly replicas: readonly number[];
  /** Ranks that together hold this replica of the model, in order. */
  readonly modelParallel: readonly number[];
  readonly dtype: DType;
  /** Over disjoint parameters; the first takes what none of them names. */
  readonly optimizers: readonly OptimizerSpec[];
  /** Without clipping and loss scale each block is updated as soon as it is reduced. */
  readonly clip: ClipRule | undefined;
  /** With one, a step whose gradient is not finite is skipped on all ranks. */
  readonly lossScale: LossScaleRule | undefined;
  /** What else of a step is an anomaly. */
  readonly anomalies: AnomalyRules;
  /** Of the steps before the first, the latest last. */
  readonly recentLosses: readonly number[];
  /** Gradients are sums over this many micro-batches of all ranks. */
  readonly numMicroBatches: number;
  readonly initial: InitialState;
  /** How it meets other ranks' shards. */
  readonly groups: GroupPlan;
  /** Life of the rank group, counted from 0. */
  readonly generation: number;
  /** Threads of this shard's arithmetic. */
  readonly numThreads: number;
  /** Who reads the parameters, by the name of {@link recipientName}. */
  readonly reader: string;
  readonly offload: OptimizerOffload | undefined;
  /** Level-3 blocks whose parameters are paged; none unless there. */
  readonly pagedParameters: ParameterOffload | undefined;
  readonly slowdown: Slowdown;
  /** Whether actors tell what they do to each block. */
  readonly trace: boolean;
  /** How long one answer of another actor may take. */
  readonly deadlineMs: number;
}

/** What optimizer state each shard leaves to an offload actor. Plain data. */
export interface OptimizerOffload {
  /** How much of it, from 0 to 1. */
  readonly ratio: number;
  readonly home: StateHome;
}

/** Which parameters a rank's shard offloads, and where to. Plain data. */
export interface ParameterOffload {
  /** Indices of the flat blocks whose parameters are in memory only while they are used. */
  readonly blocks: readonly number[];
  /** On the disk that is to hold the file. */
  readonly directory: string;
  /** How much of them may be changed at once, in bytes. */
  readonly windowBytes: number;
}

/** Delays on purpose, in milliseconds: what slower disks or links would cost. */
export interface Slowdown {
  /** Each offloaded update. */
  readonly updateMs: number;
  /** Each reduction of a block's gradient. */
  readonly reduceMs: number;
  /** Each transfer of a block's offloaded parameters. */
  readonly transferMs: number;
}
