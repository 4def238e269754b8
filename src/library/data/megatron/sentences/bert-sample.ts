import { RandomState } from "../numpy/random-state.ts";
import { type MaskVocabulary, maskTokens } from "./masked-tokens.ts";

/** Options of {@link bertSample}. */
export interface BertSampleOptions {
  readonly vocabulary: MaskVocabulary;
  /** Length that the sentences are cut to, in tokens. */
  readonly targetLength: number;
  /** Length of the padded sample, in tokens. */
  readonly length: number;
  readonly maskProbability: number;
  /** Whether the sample is a pair of parts, and the model predicts whether they are in order. */
  readonly nextSentence: boolean;
  /** The run's seed plus the sample's index. */
  readonly seed: number;
}

/** One sample of BERT's pre-training, padded; labels are -1 where nothing is predicted. */
export interface BertSample {
  readonly tokens: Int32Array;
  readonly types: Int32Array;
  readonly labels: Int32Array;
  readonly paddingMask: Int32Array;
  readonly lossMask: Int32Array;
  /** Whether the two parts are swapped. */
  readonly isRandom: boolean;
  readonly isTruncated: boolean;
}

/** Makes Megatron's BERT sample of some sentences, token for token. */
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

/** Splits the sentences into a pair. No second document is used: a "random" pair has its parts swapped. */
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

/** Removes tokens from the longer part, at either end. */
function truncate(first: number[], second: number[], target: number, random: RandomState): boolean {
  if (first.length + second.length <= target) return false;
  while (first.length + second.length > target) {
    const longer = first.length > second.length ? first : second;
    if (random.random() < 0.5) longer.shift();
    else longer.pop();
  }
  return true;
}
