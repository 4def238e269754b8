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

/** A shard's plan: its blocks, optimizers and peers. */
export interface ShardPlan {
  readonly layouts: readonly FlatBlock[];
  /** Each updates parameters of its own; the first also takes those that no other names. */
  readonly optimizers: readonly OptimizerSpec[];
  readonly peers: ShardPeers;
  readonly execution: ExecutionSettings;
  /** With a loss scale, a step whose gradient is not finite is skipped on all ranks. */
  readonly precision: PrecisionSettings;
  /** Without clipping and loss scale each block is updated as soon as it is reduced. */
  readonly training: StepPlan;
  /** Gradients are sums over this many micro-batches of all ranks, in a step with a complete batch. */
  readonly numMicroBatches: number;
  /** Further rules for anomalies in a step. */
  readonly anomalies: AnomalyRules;
  readonly offload: ShardOffload;
  readonly telemetry: TelemetrySettings;
  readonly initial: InitialState;
  /** Generation of the rank group, from 0. */
  readonly generation: number;
  /** The reader of the parameters, as named by `recipientName`. */
  readonly reader: string;
}

/** The ranks that a shard works with, and their groups. Plain data. */
export interface ShardPeers {
  readonly groups: GroupPlan;
  /** Ranks that hold the same part of the model, in order, this one included. */
  readonly replicas: readonly number[];
  /** Ranks that together hold this replica of the model, in order. */
  readonly modelParallel: readonly number[];
  /** Ranks that exchange activations and gradients, this one too: `modelParallel`, and those that experts are spread over. */
  readonly together: readonly number[];
}

/** State that a shard offloads. Plain data. */
export interface ShardOffload extends Pick<OffloadSettings, "optimizer"> {
  /** Level-3 blocks with paged parameters; undefined at other levels. */
  readonly parameters: ParameterOffload | undefined;
}

/** Parameters that a rank's shard offloads. Plain data. */
export interface ParameterOffload {
  /** Indices of the flat blocks with paged parameters. */
  readonly blocks: readonly number[];
  /** A folder on the disk that holds the file. */
  readonly directory: string;
  /** The most of them that may be modified at once, in bytes. */
  readonly windowBytes: number;
}
