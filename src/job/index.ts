export {
  type ConfigValue,
  defineJob,
  type Job,
  type JobConfig,
  type JobDefinition,
  loadJob,
  optimizersOf,
  type SampleContext,
  schedulesOf,
  type TrainingPlan,
  weighingOf,
} from "./job.ts";
export { checkWeights, type LossWeights, sharesOf, weightOf } from "./loss-weights.ts";
export { type LossValues, type Losses, valuesOf, weighLosses, weighValue, weighValues } from "./losses.ts";
export { type StepSamples, StepShares } from "./step-shares.ts";
