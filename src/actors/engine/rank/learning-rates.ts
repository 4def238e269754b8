import { type OptimizerSpec, rateAt, type Schedule } from "../../../compute/optim/index.ts";
import { type Job, type JobConfig, schedulesOf } from "../../../job/index.ts";
import type { DatasetFacts } from "../../../library/data/index.ts";

/** The learning rates of a job's optimizers; each follows a schedule of its own. */
export class LearningRates {
  readonly #optimizers: readonly OptimizerSpec[];
  readonly #schedules: readonly Schedule[];

  /** @throws {TroupeError} errors of the job's schedules */
  constructor(job: Job, optimizers: readonly OptimizerSpec[], config: JobConfig, facts: DatasetFacts) {
    this.#optimizers = optimizers;
    this.#schedules = schedulesOf(job, optimizers, config, facts);
  }

  /**
   * @param update - counted from 1, without skipped steps
   * @param factor - multiplies scheduled rates
   * @returns the first optimizer's rate, before its groups' factors: the rate in a step's report
   */
  reported(update: number, factor = 1): number {
    return this.#rateOf(0, update) * factor;
  }

  /**
   * @param update - counted from 1, without skipped steps
   * @param factor - as for {@link reported}
   * @returns the rate of every group of every optimizer, in order
   */
  ofGroups(update: number, factor = 1): number[] {
    return this.#optimizers.flatMap(({ groups }, index) => {
      const rate = this.#rateOf(index, update) * factor;
      return groups.map(({ lrFactor }) => rate * lrFactor);
    });
  }

  #rateOf(index: number, update: number): number {
    const schedule = this.#schedules[index];
    return schedule === undefined ? 0 : rateAt(schedule, update);
  }
}
