export type {
  AnomalyOptions,
  CarrierChoice,
  CheckpointOptions,
  Precision,
  RankPlacement,
  Rounding,
  RuntimeOptions,
} from "../config/index.ts";
export type { ScheduleName, ZeroName } from "../parallel/index.ts";
export { settingsIn } from "./changes.ts";
export { configure } from "./configure.ts";
export { jobUrlOf } from "./job-url.ts";
export { type PlannedJob, plannedJob } from "./planned-job.ts";
export { RESUME_AUTO, startedIn } from "./resume-auto.ts";
export { type Launched, Runtime } from "./runtime.ts";
export { trainingOf } from "./training-plan.ts";
