import { logicalRuns } from "../../compute/nn/index.ts";
import { type FlatBlock, ownedRange, piecesIn, sendsPart } from "../../compute/parallel/index.ts";
import {
  joinStatistics,
  type Statistics,
  scope,
  statisticsOf,
  type Tensor,
} from "../../compute/tensor/index.ts";

/**
 * @param name - of a parameter, or a record
 * @param pattern - with the wildcards of a shell: `*`, `?`, `[abc]`, `[!abc]`
 */
export function matchesName(name: string, pattern: string): boolean {
  const source = pattern
    .replace(/[.+^${}()|\\]/g, "\\$&")
    .replace(/\*/g, ".*")
    .replace(/\?/g, ".")
    .replace(/\[!/g, "[^");
  return new RegExp(`^${source}$`, "s").test(name);
}

/** An inspection of values: a piece at a time, and the pieces of one parameter joined. */
export interface Look<T> {
  readonly of: (values: Tensor) => T;
  readonly join: (parts: readonly T[]) => T;
}

/** Mean, deviation and extremes. */
export const statistics: Look<Statistics> = { of: statisticsOf, join: joinStatistics };

/**
 * Inspects the parameters in a shard's owned range whose names match. Among equal copies on several ranks one is inspected;
 * padding is not.
 * @param rank - of the world
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

/** @returns the owned range of a flat tensor of a complete block; a view, the caller's */
export function ownedView(layout: FlatBlock, rank: number, full: Tensor): Tensor {
  const { begin, end } = ownedRange(layout, rank);
  return full.narrow(0, begin, end - begin);
}
