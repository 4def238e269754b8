import { TroupeError } from "../../../errors/index.ts";
import { arange, type DType, gradEnabled, ops, type Tensor } from "../../tensor/index.ts";
import { isFused } from "../fusion.ts";
import type { Dropout } from "../layers/dropout.ts";
import { isQueriedBy, type PackedRow, withinSamples } from "./packed-row.ts";

// B batch, H query heads, G key/value heads, T queries, S keys, K head width. Query head h reads key/value head
// ⌊h · G / H⌋.

/** Of one head, from which on dropping weights by a kernel is faster than by a matrix of them: 0.8 x at 128², 1.5 x at 512². */
const SCORES_TO_SPARE = 256 * 256;

/** Which keys a query sees, and how they are weighed. */
export interface AttentionOptions {
  /** Whether query t sees only keys up to t + S − T: the last query is beside the last key. Default: false. */
  readonly causal?: boolean;
  /** Whether query t sees only keys from t + S − T − window + 1 on: so many, its own among them, where it is causal. */
  readonly window?: number | undefined;
  /** bool, true where a key may be seen; broadcasts to [B, H, T, S]. */
  readonly mask?: Tensor | undefined;
  /** Samples that share one row, none of which sees another; of each all queries, or one. Without a bias or a mask. */
  readonly packed?: PackedRow | undefined;
  /** Float, added to the scaled scores; broadcasts to [B, H, T, S]. Has a gradient. */
  readonly bias?: Tensor | undefined;
  /** Factor on the scores. Default: 1/√K. */
  readonly scale?: number;
  /** Of the attention weights. */
  readonly dropout?: Dropout | undefined;
}

/**
 * Softmax attention: each query's mean of the values it sees, weighed by e^(scale · q·k + bias). A query that sees nothing,
 * as where a row is padded on the left, gets the mean of all values, as of transformers' own attention. Scores are never in
 * memory as a whole, but in float64, and while dropout is active for short rows and on a device other than the host, whose kernels
 * draw no mask of ours.
 * @param q - [B, H, T, K]; any strides, one float dtype for all three
 * @param k - [B, G, S, K], H a multiple of G: grouped heads (Ainslie et al. 2023, https://arxiv.org/abs/2305.13245)
 * @param v - as k
 * @returns [B, H, T, K]
 * @throws {TroupeError} `MODULE_ARGUMENT` for shapes that do not fit, or a window below 1
 * @see Vaswani et al. 2017, https://arxiv.org/abs/1706.03762
 */
export function attention(q: Tensor, k: Tensor, v: Tensor, options: AttentionOptions = {}): Tensor {
  checkShapes(q, k, v, options);
  const { window, mask, bias, packed, dropout, scale = scaleOf(q) } = options;
  const causal = options.causal === true && q.shape[2] !== 1; // one query stands beside the last key
  // Where only the shape is asked for.
  if (q.device === "meta" && !gradEnabled()) return dropout?.forward(ops.emptyLike(q)) ?? ops.emptyLike(q);
  if (packed !== undefined) {
    const { packed: _, ...own } = options;
    return withinSamples(packed, [q, k, v], (...heads) => attention(...heads, own));
  }
  const drops = dropout?.active === true;
  const [batch = 0, numHeads = 0, numQueries = 0] = q.shape;
  const numKeys = k.shape[2] ?? 0;
  const hasDropKernel =
    (q.device === "cpu" || q.device === "meta") && numQueries * numKeys >= SCORES_TO_SPARE;
  if (q.dtype === "float64" || (drops && !hasDropKernel) || !isFused())
    return explicitAttention(q, k, v, options);
  const isWhole = mask === undefined && bias === undefined && window === undefined;
  const isEven = q.shape[1] === k.shape[1] && (!causal || q.shape[2] === k.shape[2]);
  if (isWhole && isEven && !drops) return ops.troupe.attention(q, k, v, causal, scale);
  const [ofMask, ofBias] = [mask, bias].map((given) => given && forEachKey(given, numKeys));
  if (drops) {
    const { p, seed, stream, offset, run, stride } = dropout.next([batch, numHeads, numQueries, numKeys]);
    const seen = [ofMask, ofBias, causal, window ?? 0, scale] as const;
    return ops.troupe.droppedAttention(q, k, v, ...seen, p, seed, stream, offset, run, stride);
  }
  return ops.troupe.maskedAttention(q, k, v, ofMask, ofBias, causal, window ?? 0, scale);
}

/** [B or 1, H or 1, T or 1, S] of what broadcasts to [B, H, T, S]. */
function forEachKey(given: Tensor, numKeys: number): Tensor {
  const { shape } = given;
  const whole = given.view([...Array<number>(4 - shape.length).fill(1), ...shape]);
  return whole.expand([...whole.shape.slice(0, 3), numKeys]);
}

/** The same by its definition, with all scores in memory: scores, mask, softmax, dropout, weighted sum. */
export function explicitAttention(q: Tensor, k: Tensor, v: Tensor, options: AttentionOptions): Tensor {
  const { scale = scaleOf(q), bias, dropout } = options;
  const [batch = 0, numHeads = 0, numQueries = 0] = q.shape;
  const [, numGroups = 0, numKeys = 0, width = 0] = v.shape;
  const grouped = q.reshape([batch, numGroups, -1, q.shape[3] ?? 0]); // [B, G, H/G · T, K]
  const products = grouped.matmul(k.transpose(-2, -1)).view([batch, numHeads, numQueries, numKeys]);
  const scaled = products.mul(scale);
  const scores = bias === undefined ? scaled : scaled.add(bias); // [B, H, T, S]
  const hidden = hiddenKeys(numQueries, numKeys, options);
  // Added, not filled in: queries that see nothing have the gradients that transformers gives them.
  const weights = (hidden === undefined ? scores : scores.add(penalty(hidden, scores.dtype))).softmax(-1);
  const dropped = (dropout?.forward(weights) ?? weights).to(v.dtype);
  return dropped.view([batch, numGroups, -1, numKeys]).matmul(v).view([batch, numHeads, numQueries, width]);
}

/**
 * The mask of rows of unequal length.
 * @param present - [B, S], bool or integers: whether position s of row b is one, and no padding
 * @returns bool [B, 1, 1, S], for {@link AttentionOptions.mask}
 */
export function paddingMask(present: Tensor): Tensor {
  return present.ne(0).unsqueeze(1).unsqueeze(1);
}

/** [B, T, H·K] → [B, H, T, K], without a copy. H is read off the tensor: a rank may have some of the heads. */
export function splitHeads(features: Tensor, headWidth: number): Tensor {
  const [batch = 0, length = 0] = features.shape;
  return features.view([batch, length, -1, headWidth]).transpose(1, 2);
}

/** [B, H, T, K] → [B, T, H·K]. */
export function joinHeads(heads: Tensor): Tensor {
  const [batch = 0, , length = 0] = heads.shape;
  return heads.transpose(1, 2).reshape([batch, length, -1]);
}

/** bool, true where a key is not seen, broadcasting to [B, H, T, S]; undefined where all are. */
function hiddenKeys(
  numQueries: number,
  numKeys: number,
  { causal = false, window, mask }: AttentionOptions,
): Tensor | undefined {
  const before = arange(numQueries, { dtype: "int64" })
    .add(numKeys - numQueries)
    .unsqueeze(1)
    .sub(arange(numKeys, { dtype: "int64" })); // [T, S], how far a key lies before the query
  const reasons = [
    causal ? before.lt(0) : undefined,
    window === undefined ? undefined : before.ge(window),
    mask?.logicalNot(),
  ].filter((reason) => reason !== undefined);
  return reasons.length === 0 ? undefined : reasons.reduce((all, reason) => all.logicalOr(reason));
}

/** So low that e^ of it is 0 beside any score that is seen, and finite, so that a row without one has no NaN. */
function penalty(hidden: Tensor, dtype: DType): Tensor {
  return ops
    .zeros([], dtype)
    .expand(hidden.shape)
    .maskedFill(hidden, dtype === "float16" ? -32752 : -1e38);
}

function scaleOf(q: Tensor): number {
  return 1 / Math.sqrt(q.shape.at(-1) ?? 1);
}

function checkShapes(
  q: Tensor,
  k: Tensor,
  v: Tensor,
  { window, mask, bias, packed }: AttentionOptions,
): void {
  const [batch = 0, numHeads = 0, numQueries = 0, width] = q.shape;
  const [keyBatch, numGroups = 0, numKeys = 0, keyWidth] = k.shape;
  const fits =
    q.ndim === 4 &&
    k.ndim === 4 &&
    k.shape.join() === v.shape.join() &&
    keyBatch === batch &&
    keyWidth === width &&
    numGroups > 0 &&
    numHeads % numGroups === 0;
  if (!fits) {
    throw argumentError(
      "q [B, H, T, K] and k and v [B, G, S, K] with H a multiple of G",
      `[${q.shape}], [${k.shape}] and [${v.shape}]`,
    );
  }
  if (window !== undefined && !(Number.isSafeInteger(window) && window >= 1))
    throw argumentError("a window of at least 1", `${window}`);
  const isAlone = mask === undefined && bias === undefined;
  if (
    packed !== undefined &&
    !(isAlone && batch === 1 && numKeys === packed.length && isQueriedBy(packed, numQueries))
  )
    throw argumentError(
      `samples in a row of ${packed.length} positions over one row of as many, or one query each, without mask and bias`,
      `[${q.shape}] and [${k.shape}]${isAlone ? "" : " with one of them"}`,
    );
  if (mask !== undefined && mask.dtype !== "bool")
    throw argumentError("a mask of bool, true where a key may be seen", mask.dtype);
  const scores = [batch, numHeads, numQueries, numKeys];
  for (const [name, given] of Object.entries({ mask, bias })) {
    if (given !== undefined && !broadcasts(given.shape, scores))
      throw argumentError(`a ${name} that broadcasts to [${scores}]`, `[${given.shape}]`);
  }
}

function broadcasts(shape: readonly number[], to: readonly number[]): boolean {
  const lead = to.length - shape.length;
  return lead >= 0 && shape.every((size, dim) => size === 1 || size === to[lead + dim]);
}

function argumentError(expected: string, got: string): TroupeError {
  return new TroupeError("MODULE_ARGUMENT", { where: "attention", expected, got }, { fields: { got } });
}
