import { scope } from "../scope.ts";
import type { Tensor } from "../tensor.ts";
import { joinStatistics, NO_VALUES, type Statistics, statisticsOf } from "./statistics.ts";

/**
 * A histogram of values over 2,048 fixed buckets, four per power of two on either side of zero. The buckets do not depend on
 * the values, so that histograms of a tensor's parts can be joined. Plain data.
 */
export interface Buckets {
  /** Statistics of the finite values. */
  readonly statistics: Statistics;
  readonly numNotFinite: number;
  /** Indices of the buckets that are not empty, rising with their values. */
  readonly indices: readonly number[];
  /** Number of values in each of those buckets. */
  readonly counts: readonly number[];
}

/** The histogram of no values. */
const EMPTY: Buckets = { statistics: NO_VALUES, numNotFinite: 0, indices: [], counts: [] };

/**
 * The low bits of a float32 that do not matter: the sign, eight bits of exponent and two of mantissa above them number its
 * bucket.
 */
const REST_BITS = 21;
const NUM_POSITIVE = 2 ** (31 - REST_BITS);
/** The first bucket whose exponent means infinite or NaN. */
const NOT_FINITE = 255 * 4;
/** Values per chunk, which bounds the memory for a large tensor to about 24 MB. */
const CHUNK = 2 ** 20;

/** Counts the values of a tensor. @param values - flat, of any floating dtype; the caller keeps it */
export function bucketsOf(values: Tensor): Buckets {
  const parts: Buckets[] = [];
  for (let begin = 0; begin < values.numel; begin += CHUNK) {
    const numel = Math.min(CHUNK, values.numel - begin);
    parts.push(scope(() => bucketsOfChunk(values.narrow(0, begin, numel))));
  }
  return joinBuckets(parts);
}

/** Joins the histograms of disjoint parts. */
export function joinBuckets(parts: Iterable<Buckets>): Buckets {
  const all = [...parts];
  if (all.length <= 1) return all[0] ?? EMPTY;
  const sums = new Map<number, number>();
  for (const { indices, counts } of all) {
    for (const [place, index] of indices.entries())
      sums.set(index, (sums.get(index) ?? 0) + (counts[place] ?? 0));
  }
  const indices = [...sums.keys()].sort((left, right) => left - right);
  return {
    statistics: joinStatistics(all.map(({ statistics }) => statistics)),
    numNotFinite: all.reduce((sum, { numNotFinite }) => sum + numNotFinite, 0),
    indices,
    counts: indices.map((index) => sums.get(index) ?? 0),
  };
}

/** Returns the value at which a bucket ends and the next one begins. */
export function bucketLimit(index: number): number {
  const magnitude = index >= NUM_POSITIVE ? index - NUM_POSITIVE + 1 : NUM_POSITIVE - 1 - index;
  return index >= NUM_POSITIVE ? edge(magnitude) : 0 - edge(magnitude);
}

function bucketsOfChunk(values: Tensor): Buckets {
  const bits = values.to("float32").viewDtype("int32");
  // Floored division keeps the sign bit and moves the rest down, which makes −1,024 the first index.
  const raw = bits
    .floorDivide(2 ** REST_BITS)
    .add(NUM_POSITIVE)
    .bincount(undefined, 2 * NUM_POSITIVE)
    .toTypedArray();
  const found = new Map<number, number>();
  let numNotFinite = 0;
  for (const [position, count] of raw.entries()) {
    if (Number(count) === 0) continue;
    const isPositive = position >= NUM_POSITIVE;
    const magnitude = position % NUM_POSITIVE;
    if (magnitude >= NOT_FINITE) numNotFinite += Number(count);
    else found.set(isPositive ? position : NUM_POSITIVE - 1 - magnitude, Number(count));
  }
  const indices = [...found.keys()].sort((left, right) => left - right);
  const finite = numNotFinite === 0 ? values : values.maskedSelect(values.isfinite());
  return {
    statistics: statisticsOf(finite),
    numNotFinite,
    indices,
    counts: indices.map((index) => found.get(index) ?? 0),
  };
}

/** Returns the smallest float32 whose magnitude is in this bucket. */
function edge(magnitude: number): number {
  const exponent = magnitude >> 2;
  const quarters = (magnitude & 3) / 4;
  return exponent === 0 ? quarters * 2 ** -126 : (1 + quarters) * 2 ** (exponent - 127);
}
