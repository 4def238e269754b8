import type { GroupPlan } from "../../compute/collectives/index.ts";
import type { ClipRule } from "../../compute/optim/index.ts";
import type { AnomalyRules } from "../../job/anomalies/index.ts";
import type { JobConfig } from "../../job/index.ts";
import type {
  ExecutionSettings,
  LayoutSettings,
  OffloadSettings,
  PrecisionSettings,
  TelemetrySettings,
} from "../../job/options/index.ts";
import type { DatasetFacts, SamplerState } from "../../library/data/index.ts";
import type { InitialState } from "./initial-state.ts";

/** The run's plan for its ranks, the same on every rank. Plain data. */
export interface RankPlan {
  readonly job: JobPlan;
  readonly layout: LayoutSettings;
  readonly groups: GroupPlan;
  readonly execution: ExecutionSettings;
  readonly precision: PrecisionSettings;
  readonly training: StepPlan;
  readonly anomalies: AnomalyRules;
  /** State that ranks and shards offload, and where to. */
  readonly offload: OffloadSettings;
  readonly telemetry: TelemetrySettings;
  readonly initial: InitialState;
  /** Whether states are saved to a folder. */
  readonly isSaved: boolean;
  /** Generation of the rank group, from 0. */
  readonly generation: number;
}

/** The job, its configuration and facts about its dataset. */
export interface JobPlan {
  readonly url: string;
  readonly config: JobConfig;
  readonly facts: DatasetFacts;
}

/** The samples and micro-batches of a step. */
export interface StepPlan {
  readonly seed: number;
  /** Which samples each step takes. */
  readonly sampler: SamplerState;
  /** Micro-batches of one replica in a step with a full batch: see `microBatchesAt`. */
  readonly accumulation: number;
  /** Samples in one micro-batch of one replica. */
  readonly microBatchSize: number;
  readonly clip: ClipRule | undefined;
  /** Losses of the steps before the first, the latest last. */
  readonly recentLosses: readonly number[];
}
