import type { Samples } from "../../sample-dataset.ts";
import { IndexedDataset } from "../indexed-dataset.ts";
import { blendedSamples, partsOf, type SplitName, splitNames } from "../parts.ts";
import { type DocumentSplitRule, splitRanges } from "../split-ranges.ts";
import { sentenceSamples } from "./sentence-samples.ts";

/** Options of sentence datasets. */
export interface MegatronSentenceOptions {
  /** A prefix of sentences, or `weight prefix weight prefix …`. */
  readonly dataPath: string | readonly (string | number)[];
  readonly split?: string;
  readonly splitRule?: DocumentSplitRule;
  /** Length of a sample in tokens, padding included; for T5 the encoder's. */
  readonly length: number;
  readonly seed: number;
  /** The fewest samples of each split. */
  readonly numSamples: Readonly<Record<SplitName, number>>;
  readonly shortProbability: number;
}

/** Makes a model's sample of consecutive sentences. */
export interface SentenceRule<T> {
  /** Number of special tokens around the sentences of a sample. */
  readonly numMarks: number;
  /** The fewest sentences of a sample. */
  readonly minSentences: 1 | 2;
  /**
   * @param targetLength - length that the sentences are cut to, in tokens
   * @param seed - the run's seed plus the sample's index
   */
  make(sentences: readonly ArrayLike<number>[], targetLength: number, seed: number): T;
}

/**
 * Returns the samples of indexed sentences, by split; splits without documents or samples are left out. The sample at
 * an index is the one that Megatron-LM takes there.
 * @throws {TroupeError} `DATA_INDEX`, `DATA_OPTION`
 */
export function sentenceSplits<T>(
  options: MegatronSentenceOptions,
  rule: SentenceRule<T>,
): Readonly<Partial<Record<SplitName, Samples<T> & { at(index: number): T }>>> {
  const parts = partsOf(options.dataPath).map(({ prefix, weight }) => ({
    weight,
    data: IndexedDataset.open(prefix),
  }));
  const found = splitNames.flatMap((name) => {
    const samples = blendedSamples(parts, options.numSamples[name], (data, wanted) =>
      samplesOf(data, name, wanted ?? options.numSamples[name], options, rule),
    );
    return samples === undefined || samples.length === 0 ? [] : [[name, samples] as const];
  });
  return Object.fromEntries(found) as Readonly<Partial<Record<SplitName, (typeof found)[0][1]>>>;
}

function samplesOf<T>(
  data: IndexedDataset,
  name: SplitName,
  wanted: number,
  options: MegatronSentenceOptions,
  { numMarks, minSentences, make }: SentenceRule<T>,
) {
  const { split = "969, 30, 1", splitRule = "2022", length, seed } = options;
  const [begin, end] = splitRanges(split, data.documents.length - 1, splitRule)[
    splitNames.indexOf(name)
  ] as readonly [number, number];
  if (end <= begin || wanted < 1) return undefined;
  const samples = sentenceSamples({
    documents: data.documents.subarray(begin, end + 1),
    lengths: data.lengths,
    maxSamples: wanted,
    maxLength: length - numMarks,
    shortProbability: options.shortProbability,
    seed,
    minSentences,
  });
  return {
    length: samples.length,
    at: (index: number): T => {
      const [first, behind, targetLength] = samples[index] as (typeof samples)[number];
      const sentences = Array.from({ length: behind - first }, (_, place) => data.get(first + place));
      return make(sentences, targetLength, seed + index);
    },
  };
}
