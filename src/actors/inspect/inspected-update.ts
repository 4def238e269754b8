import type { BlockState } from "../../compute/parallel/index.ts";
import { hold, joinStatistics, scaleStatistics, scope, type Tensor } from "../../compute/tensor/index.ts";
import type { BlockUpdate, InspectedUpdate } from "../protocols/index.ts";
import { inspectRange, matchesName, partsByName, statistics } from "./inspected-part.ts";

/** Statistics of the inspected updates, all together like BMTrain's `get_avg_delta` and `get_var_delta`, and by parameter. */
export interface UpdateSummary {
  readonly mean: number;
  /** Over the population, not of a sample; 0 without any. */
  readonly variance: number;
  /** Parameters that the step has updated, in the order of the model. */
  readonly parameters: readonly InspectedUpdate[];
}

/** Inspects one update of one block, begun before and ended after it: copies the owned range, if any pattern matches. */
export class UpdateInspection {
  readonly #state: BlockState;
  readonly #update: BlockUpdate;
  readonly #before: Tensor | undefined;

  /** @param state - bound, before the update */
  constructor(state: BlockState, update: BlockUpdate) {
    this.#state = state;
    this.#update = update;
    const { written, parameters } = state.layout;
    const isSeen = !written && parameters.some(({ name }) => this.#isWanted(name));
    this.#before = isSeen ? hold(() => state.values.clone()) : undefined;
  }

  readonly #isWanted = (name: string): boolean =>
    this.#update.frozen?.includes(name) !== true &&
    this.#update.inspect.some((pattern) => matchesName(name, pattern));

  /** @returns the movement of the owned range; the state is still bound */
  end(): readonly InspectedUpdate[] {
    const before = this.#before;
    if (before === undefined) return [];
    const { layout, rank, values } = this.#state;
    return scope(() => {
      before.sub_(values);
      const found = inspectRange(layout, rank, this.#isWanted, before, statistics);
      return layout.parameters.flatMap(({ name, shape, split }) => {
        const change = found.get(name);
        if (change === undefined) return [];
        const rate = this.#state.learningRateOf(name, this.#update);
        const direction = scaleStatistics(change, rate === 0 ? 0 : 1 / rate);
        return { name, shape: split?.logicalShape ?? shape, direction };
      });
    });
  }

  [Symbol.dispose](): void {
    this.#before?.dispose();
  }
}

/** Joins the shards' updates of each parameter. @param order - names of all parameters */
export function joinUpdates(parts: readonly InspectedUpdate[], order: readonly string[]): InspectedUpdate[] {
  return partsByName(parts, order).map(([name, some]) => {
    return { name, shape: some[0].shape, direction: joinStatistics(some.map(({ direction }) => direction)) };
  });
}

/** @param parameters - each complete, once */
export function summarizeUpdates(parameters: readonly InspectedUpdate[]): UpdateSummary {
  const { mean, squares, count } = joinStatistics(parameters.map(({ direction }) => direction));
  return { mean, variance: count === 0 ? 0 : squares / count, parameters };
}
