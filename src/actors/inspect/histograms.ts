import type { FlatBlock, ShardStore } from "../../compute/parallel/index.ts";
import { type Buckets, bucketLimit, bucketsOf, joinBuckets } from "../../compute/tensor/index.ts";
import type { HistogramBody, HistogramPart } from "../protocols/index.ts";
import type { ParameterPaging } from "../state/paging/index.ts";
import { InspectedStep, type Look, partsByName } from "./inspected-part.ts";

const buckets: Look<Buckets> = { of: bucketsOf, join: joinBuckets };

/** Sorts a shard's owned values into buckets in one step: gradients while they are there, parameters once updated. */
export class ShardHistograms extends InspectedStep<Buckets> {
  constructor(rank: number, store: ShardStore) {
    super(rank, store, () => true, buckets);
  }

  /** Call it after the updates of the step. @param divisor - of the gradients' sum */
  async parts(
    layouts: readonly FlatBlock[],
    divisor: number,
    paging: ParameterPaging,
  ): Promise<readonly HistogramPart[]> {
    const parts: HistogramPart[] = [];
    for (const layout of layouts.filter(({ constant }) => !constant))
      for (const [name, seen] of await this.weightsOf(layout, paging))
        parts.push({ name, of: "weights", buckets: seen, factor: 1 });
    for (const [name, seen] of this.gradients)
      parts.push({ name, of: "gradients", buckets: seen, factor: 1 / divisor });
    return parts;
  }
}

/** Joins the shards' histograms. @param order - names of all parameters */
export function histogramsOf(
  step: number,
  parts: readonly HistogramPart[],
  order: readonly string[],
): HistogramBody[] {
  return partsByName(parts, order).flatMap(([name, ofName]) =>
    (["weights", "gradients"] as const).flatMap((of) => {
      const some = ofName.filter((part) => part.of === of);
      const [first] = some;
      if (first === undefined) return [];
      const joined = joinBuckets(some.map((part) => part.buckets));
      return { kind: "histogram.measured" as const, step, name, of, ...histogramOf(joined, first.factor) };
    }),
  );
}

function histogramOf(
  { statistics, numNotFinite, indices, counts }: Buckets,
  factor: number,
): Omit<HistogramBody, "kind" | "step" | "name" | "of"> {
  const { count, mean, squares, min, max } = statistics;
  const limits: number[] = [];
  const inBuckets: number[] = [];
  for (const [place, index] of indices.entries()) {
    const before = indices[place - 1];
    // The gap between two buckets is one empty bucket.
    if (before !== undefined && before + 1 < index) {
      limits.push(bucketLimit(index - 1) * factor);
      inBuckets.push(0);
    }
    limits.push(bucketLimit(index) * factor);
    inBuckets.push(counts[place] ?? 0);
  }
  return {
    min: count === 0 ? 0 : min * factor,
    max: count === 0 ? 0 : max * factor,
    sum: count * mean * factor,
    sumOfSquares: (squares + count * mean * mean) * factor * factor,
    numValues: count + numNotFinite,
    numNotFinite,
    limits,
    counts: inBuckets,
  };
}
