import { TroupeError } from "../../../errors/index.ts";
import type { EventOf } from "../../../job/events/index.ts";
import type { BestRule } from "../../../job/index.ts";

/** The metric that an evaluation measured, with the step of the state. Plain data, kept in checkpoints. */
export type Measured = readonly [step: number, value: number];

/** The result of comparing all evaluations so far. */
export interface Standing {
  /** Whether the last one is better than all before. */
  readonly isBest: boolean;
  /** Evaluations since the best one. */
  readonly numSinceBest: number;
  readonly rateFactor: number;
}

/** Compares a run's states by the evaluations up to a step alone: a run that goes back or resumes decides as before. */
export class BestStates {
  readonly #rule: BestRule;
  #measured: readonly Measured[];

  /** @param measured - of the run that this one goes on from */
  constructor(rule: BestRule, measured: readonly Measured[] = []) {
    this.#rule = rule;
    this.#measured = measured;
  }

  has(step: number): boolean {
    return this.#measured.some(([at]) => at === step);
  }

  /** The evaluations of states up to `step`. */
  until(step: number): readonly Measured[] {
    return this.#measured.filter(([at]) => at <= step);
  }

  /** Adds the evaluation after `step` steps, drops later ones. @throws {TroupeError} `JOB_INVALID` without the rule's metric */
  note(step: number, { lossNats, losses, metrics }: Evaluated): Standing {
    const { metric = "loss" } = this.#rule;
    const value = { loss: lossNats, ...losses, ...metrics }[metric];
    if (value === undefined) throw unknownMetric(metric, { loss: lossNats, ...losses, ...metrics });
    this.#measured = [...this.#measured.filter(([at]) => at < step), [step, value]];
    return this.at(step);
  }

  /** The metric of the state after `step` steps. */
  valueAt(step: number): number | undefined {
    return this.#measured.find(([at]) => at === step)?.[1];
  }

  /** Compares the evaluations of states up to `step`. */
  at(step: number): Standing {
    const { mode = "min", minDelta = 0, reduceRate } = this.#rule;
    const sign = mode === "min" ? 1 : -1;
    let best = Number.POSITIVE_INFINITY;
    let numSinceBest = 0;
    let numSinceReduced = 0;
    let rateFactor = 1;
    for (const [, value] of this.until(step)) {
      const isBest = sign * value < best - (best === Number.POSITIVE_INFINITY ? 0 : minDelta);
      if (isBest) best = sign * value;
      numSinceBest = isBest ? 0 : numSinceBest + 1;
      numSinceReduced = isBest ? 0 : numSinceReduced + 1;
      if (reduceRate === undefined || numSinceReduced < reduceRate.patience) continue;
      rateFactor *= reduceRate.factor;
      numSinceReduced = 0;
    }
    return { isBest: numSinceBest === 0 && this.has(step), numSinceBest, rateFactor };
  }
}

type Evaluated = Pick<EventOf<"evaluation.finished">, "lossNats" | "losses" | "metrics">;

function unknownMetric(metric: string, known: Readonly<Record<string, number>>): TroupeError {
  return new TroupeError("JOB_INVALID", {
    where: "training",
    expected: "best.metric to be one of what an evaluation measures",
    got: metric,
    hint: `there are ${Object.keys(known).join(", ")}`,
  });
}
