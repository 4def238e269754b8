import type { GroupPlan } from "../../compute/collectives/index.ts";
import type { OptimizerSpec } from "../../compute/optim/index.ts";
import type { FlatBlock } from "../../compute/parallel/index.ts";
import type { AnomalyRules } from "../../job/anomalies/index.ts";
import type {
  ExecutionSettings,
  OffloadSettings,
  PrecisionSettings,
  TelemetrySettings,
} from "../../job/options/index.ts";
import type { InitialState } from "./initial-state.ts";
import type { StepPlan } from "./rank-plan.ts";

/** What a shard owns and whom it works with. */
export interface ShardPlan {
  readonly layouts: readonly FlatBlock[];
  /** Over disjoint parameters; the first takes what none of them names. */
  readonly optimizers: readonly OptimizerSpec[];
  readonly peers: ShardPeers;
  readonly execution: ExecutionSettings;
  /** With a loss scale, a step whose gradient is not finite is skipped on all ranks. */
  readonly precision: PrecisionSettings;
  /** Without clipping and loss scale each block is updated as soon as it is reduced. */
  readonly training: StepPlan;
  /** Gradients are sums over this many micro-batches of all ranks, in a step of a whole batch. */
  readonly numMicroBatches: number;
  /** What else of a step is an anomaly. */
  readonly anomalies: AnomalyRules;
  readonly offload: ShardOffload;
  readonly telemetry: TelemetrySettings;
  readonly initial: InitialState;
  /** Of the rank group, counted from 0. */
  readonly generation: number;
  /** Who reads the parameters, by the name of `recipientName`. */
  readonly reader: string;
}

/** Whom a shard works with, and how they meet. Plain data. */
export interface ShardPeers {
  readonly groups: GroupPlan;
  /** Ranks that hold the same part of the model, in order, this one included. */
  readonly replicas: readonly number[];
  /** Ranks that together hold this replica of the model, in order. */
  readonly modelParallel: readonly number[];
  /** Ranks that exchange activations and their gradients: those, and those among which experts are dealt; this one included. */
  readonly together: readonly number[];
}

/** What a shard keeps elsewhere than in its memory. Plain data. */
export interface ShardOffload extends Pick<OffloadSettings, "optimizer"> {
  /** Level-3 blocks whose parameters are paged; none unless there. */
  readonly parameters: ParameterOffload | undefined;
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
