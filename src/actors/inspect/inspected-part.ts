import { logicalRuns } from "../../compute/nn/index.ts";
import {
  type FlatBlock,
  ownedRange,
  piecesIn,
  type ShardStore,
  sendsPart,
} from "../../compute/parallel/index.ts";
import {
  joinStatistics,
  type Statistics,
  scaleStatistics,
  scope,
  statisticsOf,
  type Tensor,
} from "../../compute/tensor/index.ts";
import { describeValue, TroupeError } from "../../errors/index.ts";
import type { InspectedPart } from "../protocols/index.ts";
import { type ParameterPaging, whilePinned } from "../state/paging/index.ts";

/** @param pattern - with the wildcards of a shell: `*`, `?`, `[abc]`, `[!abc]` */
export function matchesName(name: string, pattern: string): boolean {
  return expressionOf(pattern).test(name);
}

/** Call it where a pattern comes in: elsewhere an error would end the run. @throws {TroupeError} `OPTION` */
export function checkPattern(pattern: string): void {
  try {
    expressionOf(pattern);
  } catch {
    throw new TroupeError("OPTION", {
      where: "inspect",
      expected: "pattern to have the wildcards of a shell",
      got: describeValue(pattern),
      hint: "close its brackets, with ranges in order",
      fields: { option: "pattern", got: pattern },
    });
  }
}

function expressionOf(pattern: string): RegExp {
  const source = pattern
    .replace(/[.+^${}()|\\]/g, "\\$&")
    .replace(/\*/g, ".*")
    .replace(/\?/g, ".")
    .replace(/\[!/g, "[^");
  return new RegExp(`^${source}$`, "s");
}

/** An inspection of values: a piece at a time, and the pieces of one parameter joined. */
export interface Look<T> {
  readonly of: (values: Tensor) => T;
  readonly join: (parts: readonly T[]) => T;
}

export const statistics: Look<Statistics> = { of: statisticsOf, join: joinStatistics };

/**
 * Inspects the parameters in a shard's owned range whose names match, without padding; of equal copies on several ranks one.
 * @param values - a flat tensor of the owned range; still the caller's
 */
export function inspectRange<T>(
  layout: FlatBlock,
  rank: number,
  isWanted: (name: string) => boolean,
  values: Tensor,
  look: Look<T>,
): Map<string, T> {
  const found = new Map<string, T>();
  if (!sendsPart(layout, rank)) return found;
  for (const { parameter, parameterBegin, rangeBegin, numel } of piecesIn(layout, ownedRange(layout, rank))) {
    const { name, shape, split } = parameter;
    if (!isWanted(name)) continue;
    const runs = [...logicalRuns(shape, split, parameterBegin, numel)];
    const isComplete = runs.reduce((sum, run) => sum + run.numel, 0) === numel;
    const stretches = isComplete ? [{ begin: parameterBegin, numel }] : runs;
    const parts = stretches.map((stretch) =>
      scope(() => look.of(values.narrow(0, rangeBegin + stretch.begin - parameterBegin, stretch.numel))),
    );
    found.set(name, look.join(parts));
  }
  return found;
}

/** Values in a shard's owned ranges that a step inspects, and what is found in their summed gradients, by name. */
export class InspectedStep<T> {
  readonly gradients = new Map<string, T>();
  readonly #rank: number;
  readonly #store: ShardStore;
  readonly #isWanted: (name: string) => boolean;
  readonly #look: Look<T>;

  constructor(rank: number, store: ShardStore, isWanted: (name: string) => boolean, look: Look<T>) {
    this.#rank = rank;
    this.#store = store;
    this.#isWanted = isWanted;
    this.#look = look;
  }

  /** Call it while a block's reduced gradient is there. */
  lookAtGradient(layout: FlatBlock): void {
    scope(() => {
      const gradient = this.#store.ownedGradient(layout.index);
      const found = inspectRange(layout, this.#rank, this.#isWanted, gradient, this.#look);
      for (const [name, seen] of found) this.gradients.set(name, seen);
    });
  }

  /** Looks at the parameters of a block. Call it after the updates of the step: only this shard writes its owned range. */
  async weightsOf(layout: FlatBlock, paging: ParameterPaging): Promise<ReadonlyMap<string, T>> {
    const look = () => {
      const { begin, end } = ownedRange(layout, this.#rank);
      const values = this.#store.full(layout.index).narrow(0, begin, end - begin);
      return inspectRange(layout, this.#rank, this.#isWanted, values, this.#look);
    };
    return whilePinned(paging, layout, "read", () => scope(look));
  }
}

/** One step's inspection of a shard's owned parameters whose names match, and of their gradients. */
export class ShardInspection extends InspectedStep<Statistics> {
  readonly #isIdle: boolean;

  /** @param patterns - empty: no inspection, at no cost */
  constructor(rank: number, patterns: readonly string[], store: ShardStore) {
    super(rank, store, (name) => patterns.some((pattern) => matchesName(name, pattern)), statistics);
    this.#isIdle = patterns.length === 0;
  }

  override lookAtGradient(layout: FlatBlock): void {
    if (!this.#isIdle) super.lookAtGradient(layout);
  }

  /** Call it after the updates of the step. @param divisor - of the gradients' sum */
  async parts(
    layouts: readonly FlatBlock[],
    divisor: number,
    paging: ParameterPaging,
  ): Promise<readonly InspectedPart[]> {
    if (this.#isIdle) return [];
    const parts: InspectedPart[] = [];
    for (const layout of layouts.filter(({ constant }) => !constant)) {
      const found = await this.weightsOf(layout, paging);
      for (const { name, shape, split } of layout.parameters) {
        const values = found.get(name);
        if (values === undefined) continue;
        const summed = this.gradients.get(name);
        const gradient = summed && scaleStatistics(summed, 1 / divisor);
        parts.push({ name, shape: split?.logicalShape ?? shape, values, gradient });
      }
    }
    return parts;
  }
}

/** @returns the shards' parts of each parameter that has any, by name, in the order of the model */
export function partsByName<P extends { readonly name: string }>(
  parts: readonly P[],
  order: readonly string[],
): [name: string, parts: [P, ...P[]]][] {
  const byName = Map.groupBy(parts, ({ name }) => name) as Map<string, [P, ...P[]]>;
  return order.flatMap((name) => {
    const some = byName.get(name);
    return some === undefined ? [] : [[name, some]];
  });
}
