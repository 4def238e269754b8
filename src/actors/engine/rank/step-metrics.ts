import { describeValue, TroupeError } from "../../../errors/index.ts";
import { type LossWeights, weighValue } from "../../../job/index.ts";
import type { MetricSum } from "../../protocols/index.ts";

/** The metrics that a rank's code logs in one step: by name, weighed sums over the micro-batches that had it. */
export class StepMetrics {
  readonly #sums = new Map<string, MetricSum>();
  /** The weight of the present micro-batch. */
  #weight = 1;

  /** @param share - of the micro-batch that is computed from here on; with several named losses, the first one's counts */
  begin(share: LossWeights): void {
    this.#weight = typeof share === "number" ? share : (Object.values(share)[0] ?? 1);
  }

  /** Adds one micro-batch's numbers. @throws {TroupeError} `LOSS_INVALID` for a value that is no number */
  add(metrics: Readonly<Record<string, number>>): void {
    for (const [name, value] of Object.entries(metrics)) {
      if (typeof value !== "number") {
        const got = describeValue(value);
        const hint = got === "a Tensor" ? "give its number: .item()" : undefined;
        throw new TroupeError("LOSS_INVALID", {
          where: "rank.log",
          expected: `a number as ${name}`,
          got,
          hint,
        });
      }
      const { sum, weight } = this.#sums.get(name) ?? { sum: 0, weight: 0 };
      this.#sums.set(name, {
        name,
        sum: sum + weighValue(value, this.#weight),
        weight: weight + this.#weight,
      });
    }
  }

  /** @returns the metrics logged since the last call, for the conductor to join over the ranks */
  take(): readonly MetricSum[] {
    const sums = [...this.#sums.values()];
    this.#sums.clear();
    return sums;
  }
}
