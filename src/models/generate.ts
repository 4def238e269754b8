import { TroupeError } from "../errors.ts";
import { evaluating, streamOf } from "../nn/index.ts";
import { empty, noGrad, ops, scope, tensor } from "../tensor/index.ts";
import type { LanguageModel } from "./language-model.ts";

/** How text is continued. */
export interface GenerateOptions {
  /** How many tokens are added. */
  readonly maxNewTokens: number;
  /** Divides the logits; 0 takes the most likely token. 1 unless told otherwise. */
  readonly temperature?: number;
  /** Only the k most likely tokens are drawn from; all unless told otherwise. */
  readonly topK?: number;
  /** Token n of the answer is drawn by a pure function of (seed, n). 0 unless told otherwise. */
  readonly seed?: number;
}

/**
 * Continues a text. Every token runs the model over the last `maxPositions` tokens, so a long text costs
 * O(tokens × context); memory is flat. The model is in evaluation mode meanwhile.
 * @param ids - the prompt, at least one token
 * @returns prompt and continuation
 * @throws `GENERATE_OPTION`; `MODEL_INPUT` for ids outside the vocabulary
 */
export function generate(model: LanguageModel, ids: readonly number[], options: GenerateOptions): number[] {
  checkOptions(ids, options);
  const { maxNewTokens, temperature = 1, topK = Number.POSITIVE_INFINITY, seed = 0 } = options;
  const text = [...ids];
  evaluating(model, () => {
    for (let index = 0; index < maxNewTokens; index++) {
      const logits = nextTokenLogits(model, text.slice(-model.maxPositions));
      text.push(
        temperature === 0 ? indexOfMax(logits) : draw(logits, temperature, topK, uniformAt(seed, index)),
      );
    }
  });
  return text;
}

function nextTokenLogits(model: LanguageModel, window: readonly number[]): Float32Array {
  return noGrad(() =>
    scope(() => {
      const inputIds = tensor([window], { dtype: "int64" }); // [1, T]
      const { logits } = model.forward(inputIds, { logitsToKeep: 1 }); // [1, 1, V]
      return logits.to("float32").toTypedArray() as Float32Array;
    }),
  );
}

/** Element `index` of the seed's uniform stream, in [0, 1). */
function uniformAt(seed: number, index: number): number {
  return scope(() => ops.troupe.philoxUniform_(empty([1]), 0, 1, seed, streamOf("generate"), index).item());
}

/** The token at which the cumulative probability of the `topK` most likely ones passes `uniform`. */
export function draw(logits: Float32Array, temperature: number, topK: number, uniform: number): number {
  const threshold = kthLargest(logits, topK);
  const highest = logits.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
  const weights = Float64Array.from(logits, (logit) =>
    logit >= threshold ? Math.exp((logit - highest) / temperature) : 0,
  );
  let remaining = uniform * weights.reduce((a, b) => a + b, 0);
  let last = 0;
  for (const [token, weight] of weights.entries()) {
    if (weight === 0) continue;
    last = token;
    remaining -= weight;
    if (remaining < 0) return token;
  }
  return last; // rounding left a sliver beyond the last weight
}

function kthLargest(logits: Float32Array, k: number): number {
  if (k >= logits.length) return Number.NEGATIVE_INFINITY;
  return logits.toSorted()[logits.length - k] ?? Number.NEGATIVE_INFINITY;
}

function indexOfMax(logits: Float32Array): number {
  let best = 0;
  for (const [index, logit] of logits.entries()) if (logit > (logits[best] ?? 0)) best = index;
  return best;
}

function checkOptions(ids: readonly number[], options: GenerateOptions): void {
  const { maxNewTokens, temperature = 1, topK = 1, seed = 0 } = options;
  const refuse = (expected: string, got: unknown): never => {
    throw new TroupeError(
      "GENERATE_OPTION",
      { where: "generate", expected, got: `${got}` },
      { fields: { got } },
    );
  };
  if (ids.length === 0) refuse("a prompt of at least one token", ids.length);
  if (!Number.isSafeInteger(maxNewTokens) || maxNewTokens < 0)
    refuse("maxNewTokens to be whole and ≥ 0", maxNewTokens);
  if (!(temperature >= 0 && Number.isFinite(temperature))) refuse("temperature to be ≥ 0", temperature);
  if (!(topK >= 1)) refuse("topK to be ≥ 1", topK);
  if (!Number.isSafeInteger(seed)) refuse("seed to be a whole number", seed);
}
