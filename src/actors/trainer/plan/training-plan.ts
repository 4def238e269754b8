import { checkGiven, type Job, type JobConfig, type TrainingPlan } from "../../../job/index.ts";
import type { DatasetFacts } from "../../../library/data/index.ts";

/** Returns the job's training plan. @throws {TroupeError} `JOB_INVALID` naming all its errors; any error of `training` */
export async function trainingOf(job: Job, config: JobConfig, facts: DatasetFacts): Promise<TrainingPlan> {
  // Imported here, because an actor's thread imports this room with its job and does not need the schema's library.
  const { checkTraining } = await import("../../../job/options/index.ts");
  const plan: unknown = job.training(config, facts);
  checkGiven(job.training, "training", () => checkTraining(plan));
  return plan as TrainingPlan;
}
