import { TroupeError } from "../../../../errors/index.ts";
import { RandomState } from "../numpy/random-state.ts";
import { type MaskVocabulary, maskTokens } from "./masked-tokens.ts";

/** Options of {@link t5Sample}. */
export interface T5SampleOptions {
  readonly vocabulary: MaskVocabulary;
  readonly begin: number;
  readonly end: number;
  /** Tokens that each stand for a span, in turn. */
  readonly sentinels: readonly number[];
  readonly targetLength: number;
  /** Lengths of the padded encoder's and decoder's rows, in tokens. */
  readonly length: number;
  readonly decoderLength: number;
  readonly maskProbability: number;
  /** The run's seed plus the sample's index. */
  readonly seed: number;
}

/** One sample of T5's pre-training, padded; labels are -1 where nothing is predicted. */
export interface T5Sample {
  readonly tokens: Int32Array;
  readonly decoderTokens: Int32Array;
  readonly labels: Int32Array;
  readonly lossMask: Int32Array;
  readonly isTruncated: boolean;
}

const longestSpan = 10;

/**
 * Makes Megatron's T5 sample of some sentences, token for token.
 * @throws {TroupeError} `DATA_OPTION` where there are more spans than sentinels
 */
export function t5Sample(sentences: readonly ArrayLike<number>[], options: T5SampleOptions): T5Sample {
  const { vocabulary, begin, end, sentinels, targetLength, length, decoderLength, maskProbability } = options;
  const random = new RandomState(options.seed % 2 ** 32);
  const all = sentences.flatMap((sentence) => Array.from(sentence));
  const kept = all.slice(0, targetLength);
  const { spans } = maskTokens(
    kept,
    vocabulary,
    { probability: maskProbability, maxLength: targetLength, maxSpan: longestSpan, style: "t5" },
    random,
  );
  const inOrder = spans.toSorted((a, b) => (a.positions[0] as number) - (b.positions[0] as number));
  if (inOrder.length > sentinels.length) throw tooFewSentinels(inOrder.length, sentinels.length);
  const encoder: number[] = [];
  const decoder: number[] = [begin];
  const target: number[] = [];
  let from = 0;
  for (const [i, { positions, labels }] of inOrder.entries()) {
    const sentinel = sentinels[i] as number;
    encoder.push(...kept.slice(from, positions[0]), sentinel);
    decoder.push(sentinel, ...labels);
    target.push(sentinel, ...labels);
    from = (positions.at(-1) as number) + 1;
  }
  encoder.push(...kept.slice(from));
  target.push(end);
  const padded = (tokens: readonly number[], size: number, fill: number): Int32Array => {
    const row = new Int32Array(size).fill(fill);
    row.set(tokens);
    return row;
  };
  return {
    tokens: padded(encoder, length, vocabulary.pad),
    decoderTokens: padded(decoder, decoderLength, vocabulary.pad),
    labels: padded(target, decoderLength, -1),
    lossMask: padded(
      target.map(() => 1),
      decoderLength,
      0,
    ),
    isTruncated: all.length > targetLength,
  };
}

function tooFewSentinels(numSpans: number, numSentinels: number): TroupeError {
  return new TroupeError("DATA_OPTION", {
    where: "t5 sample",
    expected: `a sentinel for each of ${numSpans} spans`,
    got: `${numSentinels}`,
    hint: "add extra ids to the vocabulary (--vocab-extra-ids)",
    fields: { numSpans, numSentinels },
  });
}
