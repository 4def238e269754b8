import { arange, type DType, gradEnabled, ops, type Tensor } from "../../tensor/index.ts";
import { argumentError } from "../argument-error.ts";
import { isFused } from "../fusion.ts";
import type { Dropout } from "../layers/dropout.ts";
import { isQueriedBy, lengthsOf, type PackedRow, withinSamples } from "./packed-row.ts";

// B batch, H query heads, G key/value heads, T queries, S keys, K head width. Query head h reads key/value head
// ⌊h · G / H⌋.

/** Scores of one head above which the dropout kernel is faster than a mask in memory: 0.8 x at 128², 1.5 x at 512². */
const SCORES_TO_SPARE = 256 * 256;

/** Options of {@link attention}: the keys that a query sees, and their weights. */
export interface AttentionOptions {
  /** Whether query t sees only keys up to t + S − T, which aligns the last query with the last key. Default: false. */
  readonly causal?: boolean;
  /**
   * Size of a sliding window: query t sees only keys from t + S − T − window + 1 on. If causal, these are `window` keys, its
   * own included.
   */
  readonly window?: number | undefined;
  /** bool, true for keys that may be seen; broadcasts to [B, H, T, S]. */
  readonly mask?: Tensor | undefined;
  /**
   * Samples packed into one row, which do not see each other. There are all queries of each sample, or one per sample. Not
   * together with a mask.
   */
  readonly packed?: PackedRow | undefined;
  /**
   * float, added to the scaled scores; broadcasts to [B, H, T, S]. Has a gradient. For samples that are packed [1, H, L, L], of which
   * each has the first rows and columns.
   */
  readonly bias?: Tensor | undefined;
  /** Factor on the scores. Default: 1/√K. */
  readonly scale?: number;
  /** Dropout of the attention weights. */
  readonly dropout?: Dropout | undefined;
}

/**
 * Computes softmax attention: for each query the mean of the values it sees, weighted by e^(scale · q·k + bias). A query that
 * sees no key, as in a row padded on the left, gets the mean of all values, as in transformers. The full score matrix is never in
 * memory, except in float64, and with active dropout for short rows or on a device, which has no kernel for our masks.
 * @param q - [B, H, T, K]; any strides, one float dtype for all three
 * @param k - [B, G, S, K], H a multiple of G: grouped-query attention (Ainslie et al. 2023, https://arxiv.org/abs/2305.13245)
 * @param v - [B, G, S, K]
 * @returns [B, H, T, K]
 * @throws {TroupeError} `MODULE_ARGUMENT` for shapes that do not fit, or a window below 1
 * @see Vaswani et al. 2017, https://arxiv.org/abs/1706.03762
 */
export function attention(q: Tensor, k: Tensor, v: Tensor, options: AttentionOptions = {}): Tensor {
  checkShapes(q, k, v, options);
  const { window, mask, bias, packed, dropout, scale = scaleOf(q) } = options;
  const causal = options.causal === true && q.shape[2] !== 1; // one query is aligned with the last key
  // Only the shape is needed.
  if (q.device === "meta" && !gradEnabled()) return dropout?.forward(ops.emptyLike(q)) ?? ops.emptyLike(q);
  if (packed !== undefined) {
    const { packed: _, ...own } = options;
    return withinSamples(packed, [q, k, v], (...heads) => {
      const [, , numQueries = 0] = heads[0].shape;
      const ofSample = bias?.narrow(2, 0, numQueries).narrow(3, 0, heads[1].shape[2] ?? 0);
      return attention(...heads, { ...own, bias: ofSample });
    });
  }
  const drops = dropout?.active === true;
  const [batch = 0, numHeads = 0, numQueries = 0] = q.shape;
  const numKeys = k.shape[2] ?? 0;
  const hasDropKernel =
    (q.device === "cpu" || q.device === "meta") && numQueries * numKeys >= SCORES_TO_SPARE;
  if (q.dtype === "float64" || (drops && !hasDropKernel) || !isFused())
    return explicitAttention(q, k, v, options);
  const isPlain = mask === undefined && bias === undefined && window === undefined;
  const isEven = q.shape[1] === k.shape[1] && (!causal || q.shape[2] === k.shape[2]);
  if (isPlain && isEven && !drops) return ops.troupe.attention(q, k, v, causal, scale);
  const [ofMask, ofBias] = [mask, bias].map((given) => given && forEachKey(given, numKeys));
  if (drops) {
    const { p, seed, stream, offset, run, stride } = dropout.next([batch, numHeads, numQueries, numKeys]);
    const seen = [ofMask, ofBias, causal, window ?? 0, scale] as const;
    return ops.troupe.droppedAttention(q, k, v, ...seen, p, seed, stream, offset, run, stride);
  }
  return ops.troupe.maskedAttention(q, k, v, ofMask, ofBias, causal, window ?? 0, scale);
}

/** Expands a tensor that broadcasts to [B, H, T, S] to [B or 1, H or 1, T or 1, S]. */
function forEachKey(given: Tensor, numKeys: number): Tensor {
  const { shape } = given;
  const x = given.view([...Array<number>(4 - shape.length).fill(1), ...shape]);
  return x.expand([...x.shape.slice(0, 3), numKeys]);
}

/** Computes {@link attention} by its definition, with all scores in memory: scores, mask, softmax, dropout, weighted sum. */
export function explicitAttention(q: Tensor, k: Tensor, v: Tensor, options: AttentionOptions): Tensor {
  const { scale = scaleOf(q), bias, dropout } = options;
  const [batch = 0, numHeads = 0, numQueries = 0] = q.shape;
  const [, numGroups = 0, numKeys = 0, width = 0] = v.shape;
  const grouped = q.reshape([batch, numGroups, -1, q.shape[3] ?? 0]); // [B, G, H/G · T, K]
  const products = grouped.matmul(k.transpose(-2, -1)).view([batch, numHeads, numQueries, numKeys]);
  const scaled = products.mul(scale);
  const scores = bias === undefined ? scaled : scaled.add(bias); // [B, H, T, S]
  const hidden = hiddenKeys(numQueries, numKeys, options);
  // Added, not filled in, so that queries that see no key have the same gradients as in transformers.
  const weights = (hidden === undefined ? scores : scores.add(penalty(hidden, scores.dtype))).softmax(-1);
  const dropped = (dropout?.forward(weights) ?? weights).to(v.dtype);
  return dropped.view([batch, numGroups, -1, numKeys]).matmul(v).view([batch, numHeads, numQueries, width]);
}

/**
 * Makes the mask of rows of unequal length.
 * @param present - [B, S], bool or integers: nonzero where position s of row b is not padding
 * @returns bool [B, 1, 1, S], for {@link AttentionOptions.mask}
 */
export function paddingMask(present: Tensor): Tensor {
  return present.ne(0).unsqueeze(1).unsqueeze(1);
}

/** Reshapes [B, T, H·K] to [B, H, T, K], without a copy. H comes from the tensor, because a rank may have only some heads. */
export function splitHeads(features: Tensor, headWidth: number): Tensor {
  const [batch = 0, length = 0] = features.shape;
  return features.view([batch, length, -1, headWidth]).transpose(1, 2);
}

/** Reshapes [B, H, T, K] to [B, T, H·K]. */
export function joinHeads(heads: Tensor): Tensor {
  const [batch = 0, , length = 0] = heads.shape;
  return heads.transpose(1, 2).reshape([batch, length, -1]);
}

/** Returns a bool tensor that is true for keys that are not seen and broadcasts to [B, H, T, S]; undefined if all are seen. */
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

/**
 * Returns values so low that their exponential is 0 next to any visible score, but finite, so that a row without visible keys
 * has no NaN.
 */
function penalty(hidden: Tensor, dtype: DType): Tensor {
  return ops
    .zeros([], dtype)
    .expand(hidden.shape)
    .maskedFill(hidden, dtype === "float16" ? -32752 : -1e38);
}

const scaleOf = (q: Tensor): number => 1 / Math.sqrt(q.shape.at(-1) ?? 1);

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
  if (!fits)
    throw argumentError(
      "attention",
      "q [B, H, T, K] and k and v [B, G, S, K] with H a multiple of G",
      `[${q.shape}], [${k.shape}] and [${v.shape}]`,
    );
  if (window !== undefined && !(Number.isSafeInteger(window) && window >= 1))
    throw argumentError("attention", "a window of at least 1", `${window}`);
  if (packed !== undefined) {
    const fitsRow = batch === 1 && numKeys === packed.length && isQueriedBy(packed, numQueries);
    if (!fitsRow || mask !== undefined)
      throw argumentError(
        "attention",
        `samples in a row of ${packed.length} positions over one row of as many, or one query each, without a mask`,
        `[${q.shape}] and [${k.shape}]${mask === undefined ? "" : " with one"}`,
      );
    const longest = Math.max(...lengthsOf(packed));
    const isLongest =
      numQueries === packed.length && bias?.shape.join() === [1, numHeads, longest, longest].join();
    if (bias !== undefined && !isLongest)
      throw argumentError(
        "attention",
        `a bias [1, ${numHeads}, ${longest}, ${longest}] for samples of a row`,
        `[${bias.shape}]`,
      );
    return;
  }
  if (mask !== undefined && mask.dtype !== "bool")
    throw argumentError("attention", "a mask of bool, true where a key may be seen", mask.dtype);
  const scores = [batch, numHeads, numQueries, numKeys];
  for (const [name, given] of Object.entries({ mask, bias })) {
    if (given !== undefined && !broadcasts(given.shape, scores))
      throw argumentError("attention", `a ${name} that broadcasts to [${scores}]`, `[${given.shape}]`);
  }
}

function broadcasts(shape: readonly number[], to: readonly number[]): boolean {
  const lead = to.length - shape.length;
  return lead >= 0 && shape.every((size, dim) => size === 1 || size === to[lead + dim]);
}
