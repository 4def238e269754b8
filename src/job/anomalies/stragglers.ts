import type { Finding } from "./finding.ts";
import { median } from "./recent-losses.ts";
import type { AnomalyRules } from "./rules.ts";

/** Steps of its own that a rank without a like is compared with. */
const WINDOW = 32;

/** Whatever the factor: less than this is the system's own unrest. */
const LEAST_EXCESS_MS = 10;

/**
 * Looks for ranks that compute for longer than is usual, step after step: longer than those that do the same work, or
 * where there are none, than they did themselves.
 */
export class StragglerWatch {
  readonly #rules: AnomalyRules;
  readonly #alike: readonly (readonly number[])[];
  readonly #past: number[][];
  readonly #numSlow: number[];

  /** @param alike - by rank, the ranks that do the same work on other samples, the rank itself among them */
  constructor(rules: AnomalyRules, alike: readonly (readonly number[])[]) {
    this.#rules = rules;
    this.#alike = alike;
    this.#past = alike.map(() => []);
    this.#numSlow = alike.map(() => 0);
  }

  /**
   * @param computedMs - by rank, how long it computed in this step, waiting left out
   * @returns the ranks, of several, that have been too slow for as many steps as it takes; each is reported once until it recovers
   */
  look(computedMs: readonly number[]): Finding[] {
    // A single rank has no other to be compared with.
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
