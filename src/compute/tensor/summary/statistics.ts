import { scope } from "../scope.ts";
import type { Tensor } from "../tensor.ts";

/** Statistics of some values, in float64. Those of a tensor's parts can be joined. Plain data. */
export interface Statistics {
  readonly count: number;
  readonly mean: number;
  /** Sum of the squared deviations from the mean. */
  readonly squares: number;
  readonly min: number;
  readonly max: number;
}

/** The statistics of no values. */
export const NO_VALUES: Statistics = {
  count: 0,
  mean: 0,
  squares: 0,
  min: Number.POSITIVE_INFINITY,
  max: Number.NEGATIVE_INFINITY,
};

/** Computes the statistics of a tensor. @param values - of any floating dtype; the caller keeps it */
export function statisticsOf(values: Tensor): Statistics {
  if (values.numel === 0) return NO_VALUES;
  return scope(() => {
    const wide = values.to("float64");
    const mean = wide.mean().item();
    const squares = wide.sub(mean).square().sum().item();
    return { count: values.numel, mean, squares, min: wide.min().item(), max: wide.max().item() };
  });
}

/**
 * Joins the statistics of disjoint parts.
 * @see Chan, Golub, LeVeque 1979, "Updating Formulae and a Pairwise Algorithm for Computing Sample Variances"
 */
export function joinStatistics(parts: Iterable<Statistics>): Statistics {
  let all = NO_VALUES;
  for (const part of parts) {
    if (part.count === 0) continue;
    const count = all.count + part.count;
    const shift = part.mean - all.mean;
    all = {
      count,
      mean: all.mean + (shift * part.count) / count,
      squares: all.squares + part.squares + (shift * shift * all.count * part.count) / count,
      // Unlike comparisons, these keep NaN.
      min: Math.min(all.min, part.min),
      max: Math.max(all.max, part.max),
    };
  }
  return all;
}

/** Returns the statistics of all values times a positive factor. */
export function scaleStatistics(statistics: Statistics, factor: number): Statistics {
  const { count, mean, squares, min, max } = statistics;
  return {
    count,
    mean: mean * factor,
    squares: squares * factor * factor,
    min: min * factor,
    max: max * factor,
  };
}

/** Returns the unbiased standard deviation; NaN for a single value, as in torch. */
export function standardDeviation({ squares, count }: Statistics): number {
  return Math.sqrt(squares / (count - 1));
}
