export type { Axis } from "./axis.ts";
export { checkGiven } from "./check-given.ts";
export { checkReturned, defineLoop, type LoopDefinition, requireLoss } from "./define-loop.ts";
export {
  type BestRule,
  defineJob,
  exampleRates,
  type Job,
  type JobDefinition,
  modelOf,
  optimizersOf,
  type SampleContext,
  schedulesOf,
  type TrainingPlan,
  weighingOf,
} from "./job.ts";
export type { ConfigValue, JobConfig } from "./job-config.ts";
export { loadJob, nameOfJob } from "./load-job.ts";
export { type LossWeights, sharesOf, weightOf } from "./loss-weights.ts";
export {
  checkLosses,
  type Losses,
  type LossValues,
  valuesOf,
  weighLosses,
  weighValue,
  weighValues,
} from "./losses.ts";
export type {
  BackwardOptions,
  ForwardResult,
  Loop,
  Rank,
  RankContext,
  ReachedActor,
  SaveName,
} from "./rank-context.ts";
export { type StepSamples, StepShares } from "./step-shares.ts";
