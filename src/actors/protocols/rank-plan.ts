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

/** Everything a rank must know of the run; the same on every rank. Plain data. */
export interface RankPlan {
  readonly job: JobPlan;
  readonly layout: LayoutPlan;
  readonly execution: ExecutionPlan;
  readonly precision: PrecisionPlan;
  readonly training: StepPlan;
  readonly anomalies: AnomalyRules;
  /** What is kept outside ranks and shards, and where. */
  readonly offload: OffloadSettings;
  readonly telemetry: ActivityPlan;
  readonly initial: InitialState;
  /** Whether states go to a folder. */
  readonly isSaved: boolean;
  /** Of the rank group, counted from 0. */
  readonly generation: number;
}

/** What is trained. */
export interface JobPlan {
  readonly url: string;
  readonly config: JobConfig;
  readonly facts: DatasetFacts;
}
