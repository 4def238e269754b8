import { type RandomState, roundHalfEven, type Shuffled } from "../numpy/random-state.ts";

/** The special tokens of samples. */
export interface MaskVocabulary {
  readonly size: number;
  /** Whether a token continues the word before it. */
  continuesWord(token: number): boolean;
  readonly classify: number;
  readonly separate: number;
  readonly mask: number;
  readonly pad: number;
}

/** Options of {@link maskTokens}. */
export interface MaskingOptions {
  readonly probability: number;
  /** Length that the sample was cut to, in tokens. */
  readonly maxLength: number;
  readonly maxSpan: number;
  /**
   * `"bert"`: spans of one to three words, some of which keep their token or get a random one; `"t5"`: longer ones, all masked.
   */
  readonly style: "bert" | "t5";
}

/** A span of positions and its original tokens. */
export interface MaskedSpan {
  readonly positions: readonly number[];
  readonly labels: readonly number[];
}

/** A sample with some of its tokens hidden. */
export interface Masked {
  readonly tokens: number[];
  /** In the order in which they were drawn. */
  readonly spans: readonly MaskedSpan[];
}

/**
 * Hides complete words of `tokens` with the draws of Megatron's `create_masked_lm_predictions`, in the same order; the
 * random state continues from its present position.
 */
export function maskTokens(
  tokens: readonly number[],
  vocabulary: MaskVocabulary,
  options: MaskingOptions,
  random: RandomState,
): Masked {
  const words = wordPositions(tokens, vocabulary);
  const wanted = Math.min(
    options.probability * options.maxLength,
    Math.max(1, roundHalfEven(tokens.length * options.probability)),
  );
  const sizes = Array.from({ length: options.maxSpan }, (_, n) => n + 1);
  const starts = words.map((_, at) => sizes.map((size) => words.slice(at, at + size)));
  random.shuffle(starts as Shuffled<number[][][]>);
  const output = [...tokens];
  const spans: MaskedSpan[] = [];
  const covered = new Set<number>();
  let numMasked = 0;
  for (const grams of starts) {
    if (numMasked >= wanted) break;
    let size = drawSize(options, sizes, random);
    let positions = (grams[size - 1] as number[][]).flat();
    while (numMasked + positions.length > wanted && size > 1) {
      size -= 1;
      positions = (grams[size - 1] as number[][]).flat();
    }
    if (numMasked + positions.length > wanted) continue;
    if (positions.some((position) => covered.has(position))) continue;
    spans.push({ positions, labels: positions.map((position) => tokens[position] as number) });
    for (const position of positions) {
      covered.add(position);
      output[position] = hidden(tokens[position] as number, vocabulary, options, random);
    }
    numMasked += positions.length;
  }
  // Has no effect here, but keeps later draws equal to Megatron's.
  random.shuffle(starts as Shuffled<number[][][]>);
  return { tokens: output, spans };
}

/** Positions of each word, without the special tokens around sentences. */
function wordPositions(tokens: readonly number[], vocabulary: MaskVocabulary): number[][] {
  const words: number[][] = [];
  for (const [position, token] of tokens.entries()) {
    if (token === vocabulary.classify || token === vocabulary.separate) continue;
    if (vocabulary.continuesWord(token) && words.length > 0) words.at(-1)?.push(position);
    else words.push([position]);
  }
  return words;
}

function drawSize({ style, maxSpan }: MaskingOptions, sizes: readonly number[], random: RandomState): number {
  if (style === "t5") return Math.min(random.geometric(0.2), maxSpan);
  return 1 + random.choice(sizes.map((size) => 1 / size / sizes.reduce((sum, other) => sum + 1 / other, 0)));
}

function hidden(
  token: number,
  { mask, size }: MaskVocabulary,
  { style }: MaskingOptions,
  random: RandomState,
): number {
  if (style === "t5" || random.random() < 0.8) return mask;
  return random.random() < 0.5 ? token : random.randint(0, size);
}
