import type { Finding } from "./finding.ts";
import { median } from "./recent-losses.ts";
import type { AnomalyRules } from "./rules.ts";

/** Number of a rank's own earlier steps to compare with if no rank does the same work. */
const WINDOW = 32;

/** Smaller differences are noise of the system, whatever the factor. */
const LEAST_EXCESS_MS = 10;

/** Finds ranks that compute longer than usual: longer than ranks with the same work, or, if there are none, than before. */
export class StragglerWatch {
  readonly #rules: AnomalyRules;
  readonly #alike: readonly (readonly number[])[];
  readonly #past: number[][];
  readonly #numSlow: number[];

  /** @param alike - for each rank, the ranks that do the same work on other samples, itself included */
  constructor(rules: AnomalyRules, alike: readonly (readonly number[])[]) {
    this.#rules = rules;
    this.#alike = alike;
    this.#past = alike.map(() => []);
    this.#numSlow = alike.map(() => 0);
  }

  /**
   * @param computedMs - each rank's in this step, without waiting
   * @returns the ranks too slow for `stragglerSteps` steps; each is reported once until it recovers
   */
  look(computedMs: readonly number[]): Finding[] {
    // A single rank has no other to compare with.
    if (computedMs.length === 1) return [];
    return computedMs.flatMap((value, rank) => {
      const limit = this.#limit(computedMs, rank);
      this.#past[rank] = [...(this.#past[rank] as number[]), value].slice(-WINDOW);
      const numSlow = value > limit ? (this.#numSlow[rank] as number) + 1 : 0;
      this.#numSlow[rank] = numSlow;
      if (numSlow !== this.#rules.stragglerSteps) return [];
      const policy = this.#rules.policies.straggler;
      return { anomaly: "straggler", value, limit, rank, policy } satisfies Finding;
    });
  }

  #limit(computedMs: readonly number[], rank: number): number {
    const others = (this.#alike[rank] as number[]).filter((other) => other !== rank);
    const past = this.#past[rank] as number[];
    const usual =
      others.length > 0
        ? median(others.map((other) => computedMs[other] as number))
        : past.length < WINDOW
          ? Number.POSITIVE_INFINITY
          : median(past);
    return Math.max(this.#rules.stragglerFactor * usual, usual + LEAST_EXCESS_MS);
  }
}
