import { TroupeError } from "../errors.ts";
import { scope, scopeUnlessAsync } from "../tensor/index.ts";
import type { Batch } from "./batch.ts";
import type { Awaitable, Dataset, DatasetFacts } from "./dataset.ts";
import { permute } from "./permutation.ts";

/** Samples by index, as map-style datasets have them; an array will do. */
export interface Samples<T> {
  readonly length: number;
  /** @returns the sample at `index`, 0 ≤ index < length: the same whenever it is asked for */
  at(index: number): Awaitable<T | undefined>;
}

/** Where a batch stands: its split, and how many samples of it were read before, over all epochs. */
export interface BatchPlace {
  readonly split: string;
  readonly position: number;
}

/** Makes one batch of several samples; synchronous, in a tensor scope. */
export type Collate<T, B> = (samples: readonly T[], place: BatchPlace) => B;

/** What {@link sampleDataset} is made of. */
export interface SampleDatasetOptions<T, B extends Batch, F extends DatasetFacts> {
  readonly facts: F;
  /** By name. */
  readonly splits: Readonly<Record<string, Samples<T>>>;
  readonly collate: Collate<T, B>;
  /** Orders the samples of each epoch. */
  readonly seed: number;
  /** Whether `train` is in another order in every epoch; the others never are. true */
  readonly shuffle?: boolean;
  readonly countTokens?: Dataset<B>["countTokens"];
  readonly score?: Dataset<B>["score"];
  readonly fingerprint?: Dataset<B>["fingerprint"];
}

/**
 * A dataset of samples that are asked for one by one. Each epoch of `train` has every sample once, in an order that is a
 * pure function of seed and epoch; a batch may end one epoch and begin the next. Other splits are read in their own order.
 * @throws {TroupeError} `DATA_EMPTY` for a split without samples, `DATA_OPTION` for a seed that is not whole
 */
export function sampleDataset<T, B extends Batch, F extends DatasetFacts>(
  options: SampleDatasetOptions<T, B, F>,
): Dataset<B, F> {
  const { facts, splits, collate, seed, shuffle = true, countTokens, score, fingerprint } = options;
  checkOptions(options);
  const indexOf = (split: string, position: number, length: number) => {
    if (split !== "train") return position;
    const place = position % length;
    return shuffle ? permute(place, length, seed, Math.floor(position / length)) : place;
  };
  return {
    facts,
    splits: Object.fromEntries(
      Object.entries(splits).map(([name, { length }]) => [name, { numSamples: length }]),
    ),
    batch(split, position, numSamples) {
      const samples = splits[split] as Samples<T>;
      const indices = Array.from({ length: numSamples }, (_, index) =>
        indexOf(split, position + index, samples.length),
      );
      return scopeUnlessAsync((): Awaitable<B> => {
        const taken = indices.map((index) => samples.at(index));
        if (!taken.some(isPromise)) return collate(taken as T[], { split, position });
        return Promise.all(taken.map((sample) => Promise.resolve(sample))).then((all) =>
          scope(() => collate(all as T[], { split, position })),
        );
      });
    },
    ...(countTokens && { countTokens }),
    ...(score && { score }),
    ...(fingerprint && { fingerprint }),
  };
}

function checkOptions<T, B extends Batch, F extends DatasetFacts>({
  facts,
  splits,
  seed,
}: SampleDatasetOptions<T, B, F>): void {
  for (const [name, { length }] of Object.entries(splits)) {
    if (Number.isSafeInteger(length) && length > 0) continue;
    throw new TroupeError(
      "DATA_EMPTY",
      { where: "data", expected: `samples in split ${name} of ${facts.source}`, got: `${length}` },
      {
        fields: { split: name, length },
      },
    );
  }
  if (Number.isSafeInteger(seed)) return;
  throw new TroupeError(
    "DATA_OPTION",
    { where: "data", expected: "seed to be a whole number", got: `${seed}` },
    {
      fields: { seed },
    },
  );
}

function isPromise(value: unknown): boolean {
  return typeof (value as { then?: unknown } | null)?.then === "function";
}
