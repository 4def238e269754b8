import { streamOf } from "../../../compute/nn/index.ts";
import { empty, ops, scope } from "../../../compute/tensor/index.ts";
import type { Settled } from "./options.ts";

/** The tokens that may be sampled. */
export type Restriction = Pick<Settled, "temperature" | "topK" | "topP">;

/** Element `index` of a row's uniform stream, in [0, 1): independent of the number of rows. */
export function uniformAt(seed: number, row: number, index: number): number {
  const stream = streamOf(row === 0 ? "generate" : `generate ${row}`);
  return scope(() => ops.troupe.philoxUniform_(empty([1]), 0, 1, seed, stream, index).item());
}

/**
 * Samples a token: the first, in order of the vocabulary, at which the cumulative probability of the allowed tokens passes `uniform`.
 * As in transformers, the temperature applies first, then `topK`, then the fewest of these that together reach `topP`; tokens as
 * likely as the last one kept are kept too.
 */
export function draw(
  logits: Float32Array,
  { temperature, topK, topP }: Restriction,
  uniform: number,
): number {
  const highest = highestOf(logits);
  const weights = new Float64Array(logits.length);
  const least = kthLargest(logits, topK);
  for (const [token, logit] of logits.entries())
    if (logit >= least) weights[token] = Math.exp((logit - highest) / temperature);
  if (topP < 1) keepNucleus(weights, topP);
  let remaining = uniform * weights.reduce((a, b) => a + b, 0);
  let last = 0;
  for (const [token, weight] of weights.entries()) {
    if (weight === 0) continue;
    last = token;
    remaining -= weight;
    if (remaining < 0) return token;
  }
  return last; // rounding may leave a rest after the last weight
}

/** The most likely token, the first of equal ones. */
export function indexOfMax(logits: Float32Array): number {
  let best = 0;
  for (const [index, logit] of logits.entries()) if (logit > (logits[best] ?? 0)) best = index;
  return best;
}

/** Makes tokens that occur in the text less likely, in place. */
export function penalise(logits: Float32Array, text: Iterable<number>, penalty: number): void {
  for (const token of new Set(text)) {
    const logit = logits[token] ?? 0;
    logits[token] = logit > 0 ? logit / penalty : logit * penalty;
  }
}

/** Keeps the fewest weights that together reach a share of all. Holtzman et al. 2019, https://arxiv.org/abs/1904.09751 */
function keepNucleus(weights: Float64Array, share: number): void {
  const sorted = weights.toSorted();
  const wanted = share * sorted.reduce((a, b) => a + b, 0);
  let sum = 0;
  let place = sorted.length;
  while (place > 0 && sum < wanted) sum += sorted[--place] ?? 0;
  const least = sorted[place] ?? 0;
  for (const [token, weight] of weights.entries()) if (weight < least) weights[token] = 0;
}

function kthLargest(logits: Float32Array, k: number): number {
  if (k >= logits.length) return Number.NEGATIVE_INFINITY;
  return logits.toSorted()[logits.length - k] ?? Number.NEGATIVE_INFINITY;
}

function highestOf(logits: Float32Array): number {
  let highest = Number.NEGATIVE_INFINITY;
  for (const logit of logits) if (logit > highest) highest = logit;
  return highest;
}
