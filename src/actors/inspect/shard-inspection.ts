import type { FlatBlock, ShardStore } from "../../compute/parallel/index.ts";
import { type Statistics, scaleStatistics, scope } from "../../compute/tensor/index.ts";
import type { InspectedPart } from "../protocols/index.ts";
import { type ParameterPaging, whilePinned } from "../state/paging/index.ts";
import { inspectRange, matchesName, ownedView, statistics } from "./inspected-part.ts";

/** One step's inspection of a shard's owned parameters whose names match, and of their gradients. */
export class ShardInspection {
  readonly #rank: number;
  readonly #patterns: readonly string[];
  readonly #store: ShardStore;
  /** Statistics of the summed gradients, by name. */
  readonly #gradients = new Map<string, Statistics>();

  /** @param patterns - empty: no inspection, at no cost */
  constructor(rank: number, patterns: readonly string[], store: ShardStore) {
    this.#rank = rank;
    this.#patterns = patterns;
    this.#store = store;
  }

  /** Call it while a block's reduced gradient is there. */
  lookAtGradient(layout: FlatBlock): void {
    if (this.#patterns.length === 0) return;
    scope(() => {
      const gradient = this.#store.ownedGradient(layout.index);
      const found = inspectRange(layout, this.#rank, this.#isWanted, gradient, statistics);
      for (const [name, seen] of found) this.#gradients.set(name, seen);
    });
  }

  /** Call it after the updates of the step: only this shard writes its owned range. @param divisor - of the gradients' sum */
  async parts(
    layouts: readonly FlatBlock[],
    divisor: number,
    paging: ParameterPaging,
  ): Promise<readonly InspectedPart[]> {
    if (this.#patterns.length === 0) return [];
    const parts: InspectedPart[] = [];
    for (const layout of layouts) {
      if (layout.constant) continue;
      const look = () => scope(() => this.#partsOf(layout, divisor));
      parts.push(...(await whilePinned(paging, layout, "read", look)));
    }
    return parts;
  }

  readonly #isWanted = (name: string): boolean =>
    this.#patterns.some((pattern) => matchesName(name, pattern));

  #partsOf(layout: FlatBlock, divisor: number): InspectedPart[] {
    const values = ownedView(layout, this.#rank, this.#store.full(layout.index));
    const found = inspectRange(layout, this.#rank, this.#isWanted, values, statistics);
    return layout.parameters.flatMap(({ name, shape, split }) => {
      const seen = found.get(name);
      if (seen === undefined) return [];
      const gradient = this.#gradients.get(name);
      return {
        name,
        shape: split?.logicalShape ?? shape,
        values: seen,
        gradient: gradient && scaleStatistics(gradient, 1 / divisor),
      };
    });
  }
}
