import { RandomState, type Shuffled } from "./numpy/random-state.ts";

/** Options of {@link gptSamples}. */
export interface GptSampleOptions {
  /** Tokens of each sequence of the dataset. */
  readonly lengths: Int32Array;
  /** Sequences of the split, each one a document. */
  readonly documents: ArrayLike<number>;
  /** The fewest samples. */
  readonly numSamples: number;
  /** Tokens that a sample predicts; it has one more. */
  readonly length: number;
  readonly seed: number;
}

/** Samples of `length` + 1 tokens, cut from concatenated shuffled documents; neighbours share a token. */
export interface GptOrder {
  /** Sequences in the order in which they are concatenated. */
  readonly documents: Int32Array;
  /** Start of each sample, and the end of the last: index in `documents` and offset in tokens, two numbers each. */
  readonly bounds: Int32Array;
  /** The order of the samples. */
  readonly order: Uint32Array;
}

/** A newly computed order, with details. */
export interface GptSamples extends GptOrder {
  readonly numEpochs: number;
  /** Whether the last epoch is shuffled separately because little of it is used. */
  readonly separatesLastEpoch: boolean;
}

// If less of the last epoch is used, it is shuffled separately.
const SEPARATE_BELOW = 0.8;

/**
 * Computes Megatron's index of GPT samples, number for number.
 * @see Megatron-LM, `_build_index_mappings` of gpt_dataset.py
 */
export function gptSamples(options: GptSampleOptions): GptSamples {
  const { lengths, documents, numSamples, length, seed } = options;
  let perEpoch = 0;
  for (let d = 0; d < documents.length; d++) perEpoch += lengths[documents[d] as number] as number;
  const fits = (epochs: number): number => Math.max(0, Math.floor((epochs * perEpoch - 1) / length));
  const numEpochs = Math.max(1, Math.ceil((numSamples * length + 1) / perEpoch));
  const numBefore = numEpochs === 1 ? 0 : fits(numEpochs - 1);
  const separatesLastEpoch =
    numEpochs > 1 &&
    numSamples - numBefore < Math.floor(SEPARATE_BELOW * Math.floor((perEpoch - 1) / length));
  const random = new RandomState(seed);
  const laid = layDocuments(documents, numEpochs, separatesLastEpoch, random);
  const bounds = cut(laid, lengths, length, fits(numEpochs));
  const order = orderOf(fits(numEpochs), separatesLastEpoch ? numBefore : fits(numEpochs), random);
  return { numEpochs, separatesLastEpoch, documents: laid, bounds, order };
}

/**
 * Whether an order is one of these documents: each of them equally often, cut where their lengths end samples. An order that was kept may
 * be of another split, or of other data.
 */
export function isOrderOf(
  { documents, bounds, order }: GptOrder,
  [begin, end]: readonly [begin: number, end: number],
  { lengths, length }: Pick<GptSampleOptions, "lengths" | "length">,
): boolean {
  const counts = new Int32Array(end - begin);
  let numTokens = 0;
  for (const document of documents) {
    if (document < begin || document >= end) return false;
    counts[document - begin] = (counts[document - begin] as number) + 1;
    numTokens += lengths[document] as number;
  }
  if (counts.some((count) => count === 0 || count !== counts[0])) return false;
  if (order.length !== Math.floor((numTokens - 1) / length)) return false;
  if (order.some((sample) => sample >= order.length)) return false;
  const cuts = cut(documents, lengths, length, order.length);
  return cuts.length === bounds.length && cuts.every((cut, index) => cut === bounds[index]);
}

function layDocuments(
  documents: ArrayLike<number>,
  numEpochs: number,
  separatesLast: boolean,
  random: RandomState,
): Int32Array {
  const count = documents.length;
  const laid = new Int32Array(count * numEpochs);
  for (let i = 0; i < laid.length; i++) laid[i] = documents[i % count] as number;
  const together = separatesLast ? laid.length - count : laid.length;
  random.shuffle(laid.subarray(0, together) as Shuffled<number>);
  if (separatesLast) random.shuffle(laid.subarray(together) as Shuffled<number>);
  return laid;
}

/** Walks through the documents, `length` tokens per sample; the token after a sample's last is the first of the next. */
function cut(laid: Int32Array, lengths: Int32Array, length: number, numSamples: number): Int32Array {
  const bounds = new Int32Array(2 * (numSamples + 1));
  let [place, offset] = [0, 0];
  for (let sample = 1; sample <= numSamples; sample++) {
    for (let left = length + 1; ; ) {
      const available = (lengths[laid[place] as number] as number) - offset;
      left -= available;
      if (left <= 0) {
        offset += left + available - 1;
        break;
      }
      place += 1;
      offset = 0;
    }
    bounds[2 * sample] = place;
    bounds[2 * sample + 1] = offset;
  }
  return bounds;
}

function orderOf(numSamples: number, numTogether: number, random: RandomState): Uint32Array {
  const order = Uint32Array.from({ length: numSamples }, (_, sample) => sample);
  random.shuffle(order.subarray(0, numTogether) as Shuffled<number>);
  if (numTogether < numSamples) random.shuffle(order.subarray(numTogether) as Shuffled<number>);
  return order;
}

/**
 * Returns the tokens of the sample at `index` in the order.
 * @param get - returns tokens of a sequence from an offset, some number or all
 * @returns as many tokens as a sample predicts, plus one
 */
export function gptTokens(
  { documents, bounds, order }: GptOrder,
  get: (sequence: number, offset?: number, length?: number) => Int32Array,
  index: number,
): Int32Array {
  const sample = order[index] as number;
  const [first, from, last, to] = bounds.subarray(2 * sample, 2 * sample + 4) as unknown as [
    number,
    number,
    number,
    number,
  ];
  const at = (place: number): number => documents[place] as number;
  if (first === last) return get(at(first), from, to - from + 1);
  const parts = [get(at(first), from)];
  for (let place = first + 1; place < last; place++) parts.push(get(at(place)));
  parts.push(get(at(last), 0, to + 1));
  const tokens = new Int32Array(parts.reduce((sum, part) => sum + part.length, 0));
  let offset = 0;
  for (const part of parts) {
    tokens.set(part, offset);
    offset += part.length;
  }
  return tokens;
}
