import { MersenneTwister, MersenneTwister64 } from "../numpy/mersenne-twister.ts";

/** What BERT and T5 samples are gathered from. */
export interface SentenceSampleOptions {
  /** First sentence of each document, and the number of sentences at the end. */
  readonly documents: ArrayLike<number>;
  /** Tokens of each sentence. */
  readonly lengths: Int32Array;
  /** Passes over the documents, at most. */
  readonly numEpochs?: number;
  /** Gathering stops at the first epoch that begins with so many. */
  readonly maxSamples: number;
  /** Tokens of a sample, without those that are put around and between its sentences. */
  readonly maxLength: number;
  /** How often a sample is to be shorter than it might. */
  readonly shortProbability: number;
  readonly seed: number;
  /** Sentences that a sample has at least: two where the next one is to be told. */
  readonly minSentences: 1 | 2;
}

/** One sample: sentences from and up to without, and how many tokens it is cut to. */
export type SentenceSample = readonly [begin: number, end: number, length: number];

const longestSentence = 512;
const unlimitedEpochs = 2 ** 31 - 2;

/**
 * Gathers neighbouring sentences until a target is reached, and shuffles what comes of it, number for number as Megatron does.
 * @see Megatron-LM, `build_mapping_impl` of helpers.cpp
 */
export function sentenceSamples(options: SentenceSampleOptions): SentenceSample[] {
  const { documents, maxSamples, numEpochs = unlimitedEpochs, seed } = options;
  const samples: SentenceSample[] = [];
  const bits = new MersenneTwister(seed);
  for (let epoch = 0; epoch < numEpochs && samples.length < maxSamples; epoch++) {
    const before = samples.length;
    for (let d = 0; d + 1 < documents.length; d++) gather(options, d, bits, samples);
    // No document is fit to be sampled: no later epoch will find one.
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
