import type { AnomalyRules } from "../anomalies/index.ts";
import type { DatasetFacts, SampleCourse } from "../data/index.ts";
import type { GroupPlan } from "../engine/rank/index.ts";
import type { JobConfig } from "../job/index.ts";
import type { RecordedTensor } from "../nn/index.ts";
import type { ClipRule, LossScaleRule, StochasticRounding } from "../optim/index.ts";
import type { FlatBlock, MeshShape, Recompute, ScheduleName, ZeroLevel } from "../parallel/index.ts";
import type { InitialState } from "../state/initial/index.ts";
import type { PartPlan } from "../state/saving/index.ts";
import type { AutocastDType, DType } from "../tensor/index.ts";
import type { OptimizerOffload, Slowdown } from "./shard-plan.ts";

/** Everything a rank must know of the run; the same on every rank. Plain data. */
export interface RankPlan {
  readonly jobUrl: string;
  readonly config: JobConfig;
  readonly facts: DatasetFacts;
  readonly mesh: MeshShape;
  /** In which order pipeline stages run micro-batches. */
  readonly schedule: ScheduleName;
  /** Chunks of the model on each pipeline stage. */
  readonly numChunks: number;
  readonly zero: ZeroLevel;
  /** What of blocks that do not say otherwise is computed again in backward. */
  readonly recompute: Recompute;
  /** Whether tensor-parallel ranks share the positions between the split layers. */
  readonly sequence: boolean;
  readonly overlapChunks: number;
  readonly groups: GroupPlan;
  /** Of the parameters that the model computes with. */
  readonly dtype: DType;
  /** What operators cast to; none where they compute in what they are given. */
  readonly autocast: AutocastDType | undefined;
  readonly seed: number;
  /** Which samples each step takes. */
  readonly course: SampleCourse;
  /** Micro-batches of one replica in one step. */
  readonly accumulation: number;
  /** Samples in one micro-batch of one replica. */
  readonly microBatchSize: number;
  readonly clip: ClipRule | undefined;
  readonly lossScale: LossScaleRule | undefined;
  readonly anomalies: AnomalyRules;
  /** Of the steps before the first, the latest last. */
  readonly recentLosses: readonly number[];
  /** Of narrow parameters. */
  readonly rounding: StochasticRounding | undefined;
  /** How far gathers run ahead of the computation, in bytes. */
  readonly prefetchBytes: number;
  /** Threads of one rank's arithmetic. */
  readonly numThreads: number;
  /** How long a rank waits for its shard or for data before it calls that a hang, in milliseconds. */
  readonly deadlineMs: number;
  /** What is kept outside ranks and shards, and where. */
  readonly offload: OffloadSettings;
  readonly slowdown: Slowdown;
  /** Whether actors tell what they do to each block. */
  readonly trace: boolean;
  readonly initial: InitialState;
  /** Life of the rank group, counted from 0. */
  readonly life: number;
}

/** What is kept elsewhere than where it is used. Plain data. */
export interface OffloadSettings {
  readonly optimizer: OptimizerOffload | undefined;
  /** What recomputed blocks keep for backward: in files on the disk of a folder. */
  readonly activations: { readonly directory: string } | undefined;
  /** The parameters of blocks at level 3, between their uses: in files on the disk of a folder. */
  readonly parameters: { readonly directory: string } | undefined;
}

/** What the conductor learns of the model once a rank has built it. Plain data. */
export interface DeclaredModel {
  /** What this rank and its shard hold. */
  readonly layouts: readonly FlatBlock[];
  /** What this rank's shard sends when the state is saved. */
  readonly saved: readonly PartPlan[];
  /** Names of the whole model's parameters, in order. */
  readonly parameters: readonly string[];
  readonly numParameters: number;
  /** config.json of a folder that `transformers` reads, where the model has one. */
  readonly modelConfig: Readonly<Record<string, unknown>> | undefined;
}

/** One rank's share of a step. */
export interface RankStepped {
  /** Loss of each micro-batch, in order; none but where the loss is computed, once for each replica. */
  readonly lossesNats: readonly number[];
  readonly learningRate: number;
  /** Of the micro-batches whose losses it tells. */
  readonly numSamples: number;
  readonly numTokens: number;
  readonly durationMs: number;
  readonly waits: Waits;
  /** Tensors that the model records, where they are looked at. */
  readonly recorded: readonly RecordedTensor[];
}

/** What a rank waited for in one step, in milliseconds. */
export interface Waits {
  /** The computation stood still for parameters. */
  readonly exposedMs: number;
  /** Gathers were under way, hidden behind the computation or not. */
  readonly gatherMs: number;
  /** The computation stood still for data. */
  readonly dataMs: number;
}

/** One rank's share of an evaluation. */
export interface RankEvaluated {
  /** Each batch of this replica, in order; none but where the loss is computed. */
  readonly batches: readonly EvaluatedBatch[];
}

/** Held-out loss of one batch. */
export interface EvaluatedBatch {
  readonly lossNats: number;
  readonly numSamples: number;
  readonly numTokens: number;
}
