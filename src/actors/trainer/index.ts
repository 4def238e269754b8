export type { AnomalyOptions, CheckpointOptions, RuntimeOptions } from "../../job/options/index.ts";
export type { LiveModel } from "./live/live-model.ts";
export { configure } from "./plan/configure.ts";
export { jobUrlOf, pythonScript } from "./plan/job-url.ts";
export { trainingOf } from "./plan/training-plan.ts";
export { settingsIn } from "./resume/changes.ts";
export { RESUME_AUTO, startedIn } from "./resume/resume-auto.ts";
export type { Launched } from "./running.ts";
export { Runtime } from "./runtime.ts";
