import { MersenneTwister, MersenneTwister64 } from "../numpy/mersenne-twister.ts";

/** Options of {@link sentenceSamples}. */
export interface SentenceSampleOptions {
  /** First sentence of each document, and the number of sentences at the end. */
  readonly documents: ArrayLike<number>;
  /** Tokens per sentence. */
  readonly lengths: Int32Array;
  /** The most passes over the documents. */
  readonly numEpochs?: number;
  /** Stops at the first epoch that begins with this many samples. */
  readonly maxSamples: number;
  /** Length of a sample in tokens, without special tokens. */
  readonly maxLength: number;
  /** Share of samples that get a shorter target length. */
  readonly shortProbability: number;
  readonly seed: number;
  /** The fewest sentences of a sample: two where the next sentence is predicted. */
  readonly minSentences: 1 | 2;
}

/** One sample: its sentences, end exclusive, and the length that it is cut to, in tokens. */
export type SentenceSample = readonly [begin: number, end: number, length: number];

const longestSentence = 512;
const unlimitedEpochs = 2 ** 31 - 2;

/**
 * Collects consecutive sentences up to a target length, and shuffles the samples, number for number as Megatron does.
 * @see Megatron-LM, `build_mapping_impl` of helpers.cpp
 */
export function sentenceSamples(options: SentenceSampleOptions): SentenceSample[] {
  const { documents, maxSamples, numEpochs = unlimitedEpochs, seed } = options;
  const samples: SentenceSample[] = [];
  const bits = new MersenneTwister(seed);
  for (let epoch = 0; epoch < numEpochs && samples.length < maxSamples; epoch++) {
    const before = samples.length;
    for (let d = 0; d + 1 < documents.length; d++) gather(options, d, bits, samples);
    // No document gives a sample, and a later epoch would not either.
    if (samples.length === before) break;
  }
  shuffle(samples, seed);
  return samples;
}

function gather(
  { documents, lengths, maxLength, shortProbability, minSentences }: SentenceSampleOptions,
  document: number,
  bits: MersenneTwister,
  samples: SentenceSample[],
): void {
  const ratio = shortProbability === 0 ? 0 : Math.round(1 / shortProbability);
  const target = (): number => {
    if (ratio === 0) return maxLength;
    const drawn = bits.next();
    return drawn % ratio === 0 ? 2 + (drawn % (maxLength - 1)) : maxLength;
  };
  const [first, last] = [documents[document] as number, documents[document + 1] as number];
  const numSentences = last - first;
  const isLong = numSentences > 1 && lengths.subarray(first, last).some((length) => length > longestSentence);
  if (isLong || numSentences < minSentences) return;
  let [begin, length, count, wanted] = [first, 0, 0, target()];
  for (let sentence = first; sentence < last; sentence++) {
    length += lengths[sentence] as number;
    count += 1;
    const left = last - sentence - 1;
    const isEnough = length >= wanted && left > 1 && count >= minSentences;
    if (!isEnough && left > 0) continue;
    samples.push([begin, sentence + 1, wanted]);
    [begin, length, count, wanted] = [sentence + 1, 0, 0, target()];
  }
}

function shuffle(samples: SentenceSample[], seed: number): void {
  const bits = new MersenneTwister64(BigInt(seed) + 1n);
  for (let i = samples.length - 1; i > 0; i--) {
    const j = Number(bits.next() % BigInt(i + 1));
    const moved = samples[i] as SentenceSample;
    samples[i] = samples[j] as SentenceSample;
    samples[j] = moved;
  }
}
