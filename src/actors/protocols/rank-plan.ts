import type { AnomalyRules } from "../../job/anomalies/index.ts";
import type { JobConfig } from "../../job/index.ts";
import type { DatasetFacts } from "../../library/data/index.ts";
import type { InitialState } from "./initial-state.ts";
import type {
  ActivityPlan,
  ExecutionPlan,
  LayoutPlan,
  OffloadSettings,
  PrecisionPlan,
  StepPlan,
} from "./plan-groups.ts";

/** The run's plan for its ranks, the same on every rank. Plain data. */
export interface RankPlan {
  readonly job: JobPlan;
  readonly layout: LayoutPlan;
  readonly execution: ExecutionPlan;
  readonly precision: PrecisionPlan;
  readonly training: StepPlan;
  readonly anomalies: AnomalyRules;
  /** State that ranks and shards offload, and where to. */
  readonly offload: OffloadSettings;
  readonly telemetry: ActivityPlan;
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
