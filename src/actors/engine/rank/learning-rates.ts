import { type OptimizerSpec, rateAt, type Schedule } from "../../../compute/optim/index.ts";
import { type Job, type JobConfig, schedulesOf } from "../../../job/index.ts";
import type { DatasetFacts } from "../../../library/data/index.ts";

/** A change of the scheduled rates of one update. */
export interface RateChange {
  /** Multiplies them. Default: 1. */
  readonly factor?: number | undefined;
  /** Replaces them. Default: the schedules' own. */
  readonly rate?: number | undefined;
}

/** The learning rates of a job's optimizers; each follows a schedule of its own. */
export class LearningRates {
  readonly #optimizers: readonly OptimizerSpec[];
  readonly #schedules: readonly Schedule[];

  /** @throws {TroupeError} errors of the job's schedules */
  constructor(job: Job, optimizers: readonly OptimizerSpec[], config: JobConfig, facts: DatasetFacts) {
    this.#optimizers = optimizers;
    this.#schedules = schedulesOf(job, optimizers, config, facts);
  }

  /** @returns the first optimizer's rate before its groups' factors, as reported @param update - from 1, without skipped steps */
  reported(update: number, change: RateChange = {}): number {
    return this.#rateOf(0, update, change);
  }

  /** @returns the rate of every group of every optimizer, in order @param update - counted from 1, without skipped steps */
  ofGroups(update: number, change: RateChange): number[] {
    return this.#optimizers.flatMap(({ groups }, index) => {
      const rate = this.#rateOf(index, update, change);
      return groups.map(({ lrFactor }) => rate * lrFactor);
    });
  }

  #rateOf(index: number, update: number, { factor = 1, rate }: RateChange): number {
    const schedule = this.#schedules[index];
    return rate ?? (schedule === undefined ? 0 : rateAt(schedule, update) * factor);
  }
}
