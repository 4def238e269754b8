import type { GroupPlan } from "../../compute/collectives/index.ts";
import type { ClipRule, LossScaleRule, StochasticRounding } from "../../compute/optim/index.ts";
import type { MeshShape, Recompute, ScheduleName, ZeroLevel } from "../../compute/parallel/index.ts";
import type { AutocastDType, Binding, Device, DType } from "../../compute/tensor/index.ts";
import type { SamplerState } from "../../library/data/index.ts";
import type { StateHome } from "./offload.ts";

/** How the model is spread over the ranks. */
export interface LayoutPlan {
  readonly mesh: MeshShape;
  readonly zero: ZeroLevel;
  /** In which order pipeline stages run micro-batches. */
  readonly schedule: ScheduleName;
  /** Chunks of the model on each pipeline stage. */
  readonly numChunks: number;
  /** Whether tensor-parallel ranks share the positions between the split layers. */
  readonly sequence: boolean;
  readonly overlapChunks: number;
  readonly groups: GroupPlan;
}

/** How a rank computes, as far as that leaves the numbers alone. */
export interface ExecutionPlan {
  /** By rank, where it computes, and its shard keeps and updates what is not offloaded; all of one kind. */
  readonly devices: readonly Device[];
  /** What of blocks that do not say otherwise is computed again in backward. */
  readonly recompute: Recompute;
  /** How far gathers run ahead of the computation, in bytes. */
  readonly prefetchBytes: number;
  /** Threads of one rank's arithmetic. */
  readonly threadsPerRank: number;
  readonly bind: Binding;
  /** How long a rank waits for its shard or for data before it calls that a hang, in milliseconds. */
  readonly deadlineMs: number;
  readonly slowdown: Slowdown;
}

/** What a rank computes in. */
export interface PrecisionPlan {
  /** Of the parameters that the model computes with. */
  readonly weights: DType;
  /** What operators cast to; none where they compute in what they are given. */
  readonly autocast: AutocastDType | undefined;
  readonly lossScale: LossScaleRule | undefined;
  /** Of narrow parameters. */
  readonly rounding: StochasticRounding | undefined;
}

/** What a step is made of. */
export interface StepPlan {
  readonly seed: number;
  /** Which samples each step takes. */
  readonly sampler: SamplerState;
  /** Micro-batches of one replica in a step of a whole batch: see `microBatchesAt`. */
  readonly accumulation: number;
  /** Samples in one micro-batch of one replica. */
  readonly microBatchSize: number;
  readonly clip: ClipRule | undefined;
  /** Of the steps before the first, the latest last. */
  readonly recentLosses: readonly number[];
}

/** What actors tell of their work. */
export interface ActivityPlan {
  /** Whether they tell what they do to each block. */
  readonly trace: boolean;
}

/** What is kept elsewhere than where it is used. Plain data. */
export interface OffloadSettings {
  readonly optimizer: OptimizerOffload | undefined;
  /** What recomputed blocks keep for backward: in files, or, of a device, in the host's memory. */
  readonly activations: StateHome | undefined;
  /** The parameters of blocks at level 3, between their uses: in files on the disk of a folder. */
  readonly parameters: { readonly directory: string } | undefined;
}

/** What optimizer state each shard leaves to an offload actor. Plain data. */
export interface OptimizerOffload {
  /** How much of it, from 0 to 1. */
  readonly ratio: number;
  readonly home: StateHome;
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
