import type { DatasetFacts } from "../../data/index.ts";
import { type Job, type JobConfig, schedulesOf } from "../../job/index.ts";
import { type OptimizerSpec, rateAt, type Schedule } from "../../optim/index.ts";

/** The learning rates of a job's optimizers; each follows a schedule of its own. */
export class LearningRates {
  readonly #optimizers: readonly OptimizerSpec[];
  readonly #schedules: readonly Schedule[];

  /** @throws {TroupeError} what the job's schedules refuse */
  constructor(job: Job, optimizers: readonly OptimizerSpec[], config: JobConfig, facts: DatasetFacts) {
    this.#optimizers = optimizers;
    this.#schedules = schedulesOf(job, optimizers, config, facts);
  }

  /**
   * @param update - counted from 1, skipped steps left out
   * @returns the first optimizer's rate, before its groups' factors: what is reported of a step
   */
  reported(update: number): number {
    const [first] = this.#schedules;
    return first === undefined ? 0 : rateAt(first, update);
  }

  /**
   * @param update - counted from 1, skipped steps left out
   * @returns the rate of every group of every optimizer, in order
   */
  ofGroups(update: number): number[] {
    return this.#optimizers.flatMap(({ groups }, index) => {
      const rate = rateAt(this.#schedules[index] as Schedule, update);
      return groups.map(({ lrFactor }) => rate * lrFactor);
    });
  }
}
