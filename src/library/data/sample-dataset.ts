import { scope, scopeUnlessAsync } from "../../compute/tensor/index.ts";
import { describeValue, noteOrigin, optionErrors, TroupeError } from "../../errors/index.ts";
import type { Batch } from "./batch.ts";
import { batchError } from "./built-batches.ts";
import type { Awaitable, Dataset, DatasetFacts } from "./dataset.ts";
import { permute } from "./permutation.ts";

/** Samples by index, as in map-style datasets; an array will do. */
export interface Samples<T> {
  readonly length: number;
  /** Returns the sample at `index`, 0 ≤ index < length: always the same one. */
  at(index: number): Awaitable<T | undefined>;
}

/** How the samples of an epoch are ordered. */
export interface SampleOrder {
  readonly seed: number;
  readonly isShuffled: boolean;
}

/** Samples with an order of their own, in which they are read well. */
export interface OrderedSamples<T> extends Samples<T> {
  /**
   * Returns the index of the sample at `position` of an endless sequence, of which each epoch has every sample once: a pure
   * function of its arguments. May begin to read samples that are soon asked for.
   */
  indexAt(position: number, order: SampleOrder): number;
}

/** The place of a batch: its split, and the samples of it read before, over all epochs. */
export interface BatchPlace {
  readonly split: string;
  readonly position: number;
  /** The index of each sample in its split, in the order of the batch. */
  readonly indices: readonly number[];
}

/** Makes one batch of several samples; synchronous, in a tensor scope. */
export type Collate<T, B> = (samples: readonly T[], place: BatchPlace) => B;

/**
 * Groups samples by length: within each window of so many samples, counted from the first epoch's start, they are
 * sorted, shortest first. Windows keep their samples: with one step's batch as the window, each step has the samples
 * that it would have anyway, and its micro-batches have similar lengths.
 */
export interface LengthBuckets {
  /** Samples in a window; constant for a run. */
  readonly window: number;
  /**
   * Whether a window is one step's batch, read in batches of one size. Then they are ordered so that replicas, which
   * each read several consecutive batches, have about equal work, since a step takes as long as the slowest.
   */
  readonly isStep?: boolean;
  /** Length of the sample of `train` at `index`. */
  readonly lengthOf: (index: number) => number;
}

/** Options of {@link sampleDataset}. */
export interface SampleDatasetOptions<T, B extends Batch, F extends DatasetFacts> {
  readonly facts: F;
  /** By name. */
  readonly splits: Readonly<Record<string, Samples<T> | OrderedSamples<T>>>;
  readonly collate: Collate<T, B>;
  /** Orders the samples of each epoch. */
  readonly seed: number;
  /** Whether `train` is shuffled for every epoch; other splits never are. Default: true. */
  readonly shuffle?: boolean;
  /** Groups samples of similar length in `train`. */
  readonly buckets?: LengthBuckets | undefined;
  readonly countTokens?: Dataset<B>["countTokens"];
  readonly score?: Dataset<B>["score"];
  readonly fingerprint?: Dataset<B>["fingerprint"];
}

/**
 * Makes a dataset of samples that are read one by one. Each epoch of `train` has every sample once, in an order that is
 * a pure function of seed and epoch; a batch may span two epochs. Other splits are read in their own order.
 * @throws {TroupeError} `DATA_EMPTY` for a split without samples, `DATA_OPTION` for a seed that is not an integer, or
 * no `collate`
 */
export function sampleDataset<T, B extends Batch, F extends DatasetFacts>(
  options: SampleDatasetOptions<T, B, F>,
): Dataset<B, F> {
  const { facts, splits, collate, seed, shuffle = true, buckets, countTokens, score, fingerprint } = options;
  checkOptions(options);
  const drawn = (position: number, samples: Samples<T> | OrderedSamples<T>) => {
    if ("indexAt" in samples) return samples.indexAt(position, { seed, isShuffled: shuffle });
    const { length } = samples;
    const place = position % length;
    return shuffle ? permute(place, length, seed, Math.floor(position / length)) : place;
  };
  const ordered = buckets === undefined ? drawn : byLength(buckets, drawn);
  return {
    facts,
    splits: Object.fromEntries(
      Object.entries(splits).map(([name, { length }]) => [name, { numSamples: length }]),
    ),
    batch(split, position, numSamples) {
      const samples = splits[split] as Samples<T>;
      const isTrained = split === "train";
      const first =
        isTrained && buckets?.isStep === true ? dealt(buckets.window, position, numSamples) : position;
      const indices = Array.from({ length: numSamples }, (_, index) =>
        isTrained ? ordered(first + index, samples) : first + index,
      );
      return scopeUnlessAsync((): Awaitable<B> => {
        const taken = indices.map((index) => readSample(samples, split, index));
        const place = { split, position, indices };
        if (!taken.some(isPromise)) return collate(taken as T[], place);
        return Promise.all(taken).then((all) => scope(() => collate(all, place)));
      });
    },
    ...(countTokens && { countTokens }),
    ...(score && { score }),
    ...(fingerprint && { fingerprint }),
  };
}

/** Reads a sample; errors of `at` carry its index. @throws {TroupeError} `DATA_BATCH` where there is no such sample */
function readSample<T>(samples: Samples<T>, split: string, index: number): Awaitable<T> {
  const call = `at(${index}) of split ${split}`;
  const note = (error: unknown): never => {
    noteOrigin(error, { call });
    throw error;
  };
  const check = (sample: T | undefined): T => {
    if (sample !== undefined) return sample;
    throw batchError(`${call} to return a sample`, "undefined");
  };
  try {
    const sample = samples.at(index);
    return isPromise(sample) ? Promise.resolve(sample).then(check).catch(note) : check(sample);
  } catch (error) {
    return note(error);
  }
}

/** The most sorted windows kept: the ranks' present ones and one ahead. */
const WINDOWS_KEPT = 4;

/** Sorts the samples of each window, shortest first; of equal ones the first drawn. */
function byLength<S>({ window, lengthOf }: LengthBuckets, drawn: (position: number, samples: S) => number) {
  const kept = new Map<number, readonly number[]>();
  return (position: number, samples: S): number => {
    const number = Math.floor(position / window);
    let sorted = kept.get(number);
    if (sorted === undefined) {
      const all = Array.from({ length: window }, (_, place) => drawn(number * window + place, samples));
      sorted = all.toSorted((left, right) => lengthOf(left) - lengthOf(right));
      kept.set(number, sorted);
      const [oldest] = kept.keys();
      if (kept.size > WINDOWS_KEPT && oldest !== undefined) kept.delete(oldest);
    }
    return sorted[position % window] as number;
  };
}

/** Returns the start, within its sorted window, of the batch at `position` of a step. */
function dealt(window: number, position: number, numSamples: number): number {
  const inWindow = position % window;
  if (window % numSamples !== 0 || inWindow % numSamples !== 0) return position;
  const batch = inEvenTurns(window / numSamples)[inWindow / numSamples] as number;
  return position - inWindow + batch * numSamples;
}

/**
 * Orders the numbers from 0 to below `count` so that sums of neighbours are similar: each is paired with its
 * counterpart from the other end, those pairs likewise, and so on. For 8: 0 7 3 4 1 6 2 5.
 */
function inEvenTurns(count: number): readonly number[] {
  if (count <= 2) return Array.from({ length: count }, (_, number) => number);
  const pairs = inEvenTurns(Math.ceil(count / 2));
  return pairs.flatMap((pair) => [...new Set([pair, count - 1 - pair])]);
}

function checkOptions<T, B extends Batch, F extends DatasetFacts>({
  facts,
  splits,
  collate,
  seed,
  buckets,
}: SampleDatasetOptions<T, B, F>): void {
  if (typeof collate !== "function")
    throw new TroupeError("DATA_OPTION", {
      where: "data",
      expected: "collate to be a function from samples to a batch",
      got: describeValue(collate),
      hint: "stack() joins records of tensors, numbers and texts",
    });
  for (const [name, { length }] of Object.entries(splits)) {
    if (Number.isSafeInteger(length) && length > 0) continue;
    throw new TroupeError("DATA_EMPTY", {
      where: "data",
      expected: `samples in split ${name} of ${facts.source}`,
      got: `${length}`,
      fields: { split: name, length },
    });
  }
  const { window = 1 } = buckets ?? {};
  if (!(Number.isSafeInteger(window) && window >= 1))
    throw new TroupeError("DATA_OPTION", {
      where: "data",
      expected: "a window of at least 1 sample",
      got: `${window}`,
      fields: { window },
    });
  if (!Number.isSafeInteger(seed)) throw optionErrors("DATA_OPTION", "data")("seed", "a whole number", seed);
}

/** Whether a value must be waited for. */
export function isPromise<T>(value: Awaitable<T>): value is PromiseLike<T> {
  return typeof (value as { then?: unknown } | null)?.then === "function";
}
