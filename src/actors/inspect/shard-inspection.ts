import type { FlatBlock, ShardStore } from "../../compute/parallel/index.ts";
import { type Statistics, scaleStatistics } from "../../compute/tensor/index.ts";
import type { InspectedPart } from "../protocols/index.ts";
import type { ParameterPaging } from "../state/paging/index.ts";
import { InspectedStep, matchesName, statistics } from "./inspected-part.ts";

/** One step's inspection of a shard's owned parameters whose names match, and of their gradients. */
export class ShardInspection {
  readonly #patterns: readonly string[];
  readonly #step: InspectedStep<Statistics>;

  /** @param patterns - empty: no inspection, at no cost */
  constructor(rank: number, patterns: readonly string[], store: ShardStore) {
    this.#patterns = patterns;
    const isWanted = (name: string) => patterns.some((pattern) => matchesName(name, pattern));
    this.#step = new InspectedStep(rank, store, isWanted, statistics);
  }

  /** Call it while a block's reduced gradient is there. */
  lookAtGradient(layout: FlatBlock): void {
    if (this.#patterns.length > 0) this.#step.lookAtGradient(layout);
  }

  /** Call it after the updates of the step. @param divisor - of the gradients' sum */
  async parts(
    layouts: readonly FlatBlock[],
    divisor: number,
    paging: ParameterPaging,
  ): Promise<readonly InspectedPart[]> {
    if (this.#patterns.length === 0) return [];
    const parts: InspectedPart[] = [];
    for (const layout of layouts.filter(({ constant }) => !constant)) {
      const found = await this.#step.weightsOf(layout, paging);
      for (const { name, shape, split } of layout.parameters) {
        const values = found.get(name);
        if (values === undefined) continue;
        const summed = this.#step.gradients.get(name);
        const gradient = summed && scaleStatistics(summed, 1 / divisor);
        parts.push({ name, shape: split?.logicalShape ?? shape, values, gradient });
      }
    }
    return parts;
  }
}
