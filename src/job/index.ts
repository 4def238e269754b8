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
} from "./job.ts";
