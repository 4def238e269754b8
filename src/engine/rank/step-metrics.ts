import { type LossWeights, weighValue } from "../../job/index.ts";
import type { MetricSum } from "../../protocols/index.ts";

/** What a rank's code logs in one step: by name, weighed sums over the micro-batches that had it. */
export class StepMetrics {
  readonly #sums = new Map<string, MetricSum>();
  /** What the micro-batch counts that is computed now. */
  #weight = 1;

  /** @param share - of the micro-batch that is computed from here on; where losses have their own, the first one's counts */
  begin(share: LossWeights): void {
    this.#weight = typeof share === "number" ? share : (Object.values(share)[0] ?? 1);
  }

  /** Adds one micro-batch's numbers. */
  add(metrics: Readonly<Record<string, number>>): void {
    for (const [name, value] of Object.entries(metrics)) {
      const { sum, weight } = this.#sums.get(name) ?? { sum: 0, weight: 0 };
      this.#sums.set(name, {
        name,
        sum: sum + weighValue(value, this.#weight),
        weight: weight + this.#weight,
      });
    }
  }

  /** @returns what was logged since the last time, for the conductor to join over the ranks */
  take(): readonly MetricSum[] {
    const sums = [...this.#sums.values()];
    this.#sums.clear();
    return sums;
  }
}
