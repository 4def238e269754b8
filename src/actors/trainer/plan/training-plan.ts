import { checkGiven, type Job, type JobConfig, type TrainingPlan } from "../../../job/index.ts";
import type { DatasetFacts } from "../../../library/data/index.ts";

/**
 * @returns how a job is trained
 * @throws {TroupeError} `JOB_INVALID` for what is no plan, naming all that is wrong with it; what `training` throws
 */
export async function trainingOf(job: Job, config: JobConfig, facts: DatasetFacts): Promise<TrainingPlan> {
  // Not above: an actor's thread imports this room with its job, and would load the schema's library in vain.
  const { checkTraining } = await import("../../../job/options/index.ts");
  const plan: unknown = job.training(config, facts);
  checkGiven(job.training, "training", () => checkTraining(plan));
  return plan as TrainingPlan;
}
