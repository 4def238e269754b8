import { RandomState } from "../numpy/random-state.ts";
import { type MaskVocabulary, maskTokens } from "./masked-tokens.ts";

/** How a BERT sample is made. */
export interface BertSampleOptions {
  readonly vocabulary: MaskVocabulary;
  /** Tokens that the sentences are cut to. */
  readonly targetLength: number;
  /** Tokens of the padded sample. */
  readonly length: number;
  readonly maskProbability: number;
  /** Whether the sentences are parted in two, of which the model says whether they stand in their order. */
  readonly nextSentence: boolean;
  /** The run's seed and the sample's number, added. */
  readonly seed: number;
}

/** One sample of BERT's pretraining, padded; labels are -1 where nothing is to be told. */
export interface BertSample {
  readonly tokens: Int32Array;
  readonly types: Int32Array;
  readonly labels: Int32Array;
  readonly paddingMask: Int32Array;
  readonly lossMask: Int32Array;
  /** Whether the two parts changed places. */
  readonly isRandom: boolean;
  readonly isTruncated: boolean;
}

/** Megatron's BERT sample of these sentences, token for token. */
export function bertSample(
  sentences: readonly ArrayLike<number>[],
  options: BertSampleOptions,
): BertSample & { readonly random: RandomState } {
  const { vocabulary, targetLength, length, maskProbability, nextSentence } = options;
  const random = new RandomState(options.seed % 2 ** 32);
  const { first, second, isRandom } = parted(sentences, nextSentence, random);
  const isTruncated = truncate(first, second, targetLength, random);
  const { classify, separate, pad } = vocabulary;
  const tail = nextSentence ? [...second, separate] : [];
  const unmasked = [classify, ...first, separate, ...tail];
  const { tokens, spans } = maskTokens(
    unmasked,
    vocabulary,
    { probability: maskProbability, maxLength: targetLength, maxSpan: 3, style: "bert" },
    random,
  );
  const sample = {
    tokens: new Int32Array(length).fill(pad),
    types: new Int32Array(length).fill(pad),
    labels: new Int32Array(length).fill(-1),
    paddingMask: new Int32Array(length),
    lossMask: new Int32Array(length),
  };
  sample.tokens.set(tokens);
  sample.types.fill(0, 0, first.length + 2).fill(1, first.length + 2, tokens.length);
  sample.paddingMask.fill(1, 0, tokens.length);
  for (const { positions, labels } of spans) {
    for (const [i, position] of positions.entries()) {
      sample.labels[position] = labels[i] as number;
      sample.lossMask[position] = 1;
    }
  }
  return { ...sample, isRandom, isTruncated, random };
}

/** No second document is used: a pair is random when its parts have changed places. */
function parted(
  sentences: readonly ArrayLike<number>[],
  nextSentence: boolean,
  random: RandomState,
): { first: number[]; second: number[]; isRandom: boolean } {
  const all = sentences.map((sentence) => Array.from(sentence));
  if (!nextSentence) return { first: all.flat(), second: [], isRandom: false };
  const end = all.length >= 3 ? random.randint(1, all.length) : 1;
  const [first, second] = [all.slice(0, end).flat(), all.slice(end).flat()];
  return random.random() < 0.5
    ? { first: second, second: first, isRandom: true }
    : { first, second, isRandom: false };
}

/** Takes tokens from the longer part, at either end. */
function truncate(first: number[], second: number[], target: number, random: RandomState): boolean {
  if (first.length + second.length <= target) return false;
  while (first.length + second.length > target) {
    const longer = first.length > second.length ? first : second;
    if (random.random() < 0.5) longer.shift();
    else longer.pop();
  }
  return true;
}
