import type { Tensor } from "../../tensor/index.ts";
import { type AttentionOptions, attention } from "./attention.ts";
import { madeOnce, withPast } from "./decoding.ts";
import { attendInPages, crossInPages } from "./pages.ts";

/**
 * Computes the causal attention of a text to itself: during generation to all earlier positions too, whose keys and values are
 * kept for each attention.
 * @param owner - the attention
 * @param q - [B, H, T, K] @param k - [B, G, T, K], as v
 * @param options - as in {@link attention}; a bias is that of `RelativePositionBias.causal`
 * @returns [B, H, T, K]
 */
export function selfAttention(
  owner: object,
  q: Tensor,
  k: Tensor,
  v: Tensor,
  options: Omit<AttentionOptions, "causal"> = {},
): Tensor {
  return (
    attendInPages(owner, [q, k, v], options) ??
    attention(q, ...withPast(owner, k, v), { ...options, causal: true })
  );
}

/**
 * Computes the attention of a text to others that do not change, such as an encoder's states: during generation their keys and
 * values are computed once, and kept for each attention.
 * @param owner - the attention
 * @param q - [B, H, T, K]
 * @param makeKeys - computes keys and values, [B, G, S, K] each
 * @returns [B, H, T, K]
 */
export function crossAttention(
  owner: object,
  q: Tensor,
  makeKeys: () => [keys: Tensor, values: Tensor],
  options: Omit<AttentionOptions, "causal" | "bias"> = {},
): Tensor {
  return (
    crossInPages(owner, q, makeKeys, options) ??
    attention(q, ...(madeOnce(owner, makeKeys) as [Tensor, Tensor]), options)
  );
}
