import { ones, ops, type Tensor } from "../tensor/index.ts";
import type { Dropout } from "./dropout.ts";

/** What causal attention may be told. */
export interface AttentionOptions {
  /** Factor on the scores; 1/√K unless told otherwise. */
  readonly scale?: number;
  /** Dropout of the attention weights. */
  readonly dropout?: Dropout;
}

/**
 * Softmax attention in which a position sees itself and those before it. B batch, H heads, T positions, K head width.
 * Memory is O(T) a head; O(T²) in float64, and with active dropout, whose mask must be ours to be a pure function of the
 * step.
 * @param q - [B, H, T, K], k and v alike; any strides, one float dtype
 * @returns [B, H, T, K]
 * @see Vaswani et al. 2017, https://arxiv.org/abs/1706.03762
 */
export function causalAttention(q: Tensor, k: Tensor, v: Tensor, options: AttentionOptions = {}): Tensor {
  const scale = options.scale ?? 1 / Math.sqrt(q.shape.at(-1) ?? 1);
  const dropout = options.dropout;
  if (dropout?.active || q.dtype === "float64") return explicitAttention(q, k, v, scale, dropout);
  return ops.troupe.attention(q, k, v, true, scale);
}

/** The same by its definition: scores, mask, softmax, dropout, weighted sum. */
export function explicitAttention(q: Tensor, k: Tensor, v: Tensor, scale: number, dropout?: Dropout): Tensor {
  const length = q.shape.at(-2) ?? 0;
  const future = ones([length, length], { dtype: "bool" }).triu(1); // [T, T]
  const scores = q.matmul(k.transpose(-2, -1)).mul(scale).maskedFill(future, Number.NEGATIVE_INFINITY); // [B, H, T, T]
  const weights = scores.softmax(-1); // [B, H, T, T]
  return (dropout?.forward(weights) ?? weights).matmul(v); // [B, H, T, K]
}
