import { scope } from "../scope.ts";
import type { Tensor } from "../tensor.ts";
import { joinStatistics, NO_VALUES, type Statistics, statisticsOf } from "./statistics.ts";

/**
 * How many values fall into each of 2,048 fixed buckets, four to a power of two on either side of zero. Since the buckets
 * do not depend on the values, parts of a tensor can be joined to the whole. Plain data.
 */
export interface Buckets {
  /** Of the finite values. */
  readonly statistics: Statistics;
  readonly numNotFinite: number;
  /** Of the buckets that are not empty, rising with the values in them. */
  readonly indices: readonly number[];
  /** Values in each of those. */
  readonly counts: readonly number[];
}

/** Of no values at all. */
const EMPTY: Buckets = { statistics: NO_VALUES, numNotFinite: 0, indices: [], counts: [] };

/** Sign, eight bits of exponent, two of mantissa: what is left of a float32 above these bits numbers its bucket. */
const REST_BITS = 21;
const NUM_POSITIVE = 2 ** (31 - REST_BITS);
/** The first bucket whose exponent means infinite, or not a number. */
const NOT_FINITE = 255 * 4;
/** Values at a time: bounds the memory of a look at a large tensor to some 24 MB. */
const CHUNK = 2 ** 20;

/** @param values - flat, of any floating dtype; still the caller's */
export function bucketsOf(values: Tensor): Buckets {
  const parts: Buckets[] = [];
  for (let begin = 0; begin < values.numel; begin += CHUNK) {
    const numel = Math.min(CHUNK, values.numel - begin);
    parts.push(scope(() => bucketsOfChunk(values.narrow(0, begin, numel))));
  }
  return joinBuckets(parts);
}

/** Joins the buckets of disjoint parts. */
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

/** @returns the value at which a bucket ends and the next one begins */
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

/** The smallest float32 whose magnitude is in this bucket. */
function edge(magnitude: number): number {
  const exponent = magnitude >> 2;
  const quarters = (magnitude & 3) / 4;
  return exponent === 0 ? quarters * 2 ** -126 : (1 + quarters) * 2 ** (exponent - 127);
}
