import type { Tensor } from "../../tensor/index.ts";
import { type AttentionOptions, attention } from "./attention.ts";
import { withPast } from "./decoding.ts";
import { attendInPages } from "./pages.ts";

/**
 * Computes the causal attention of a text to itself: during generation to all earlier positions too, whose keys and values are
 * kept for each attention.
 * @param owner - the attention
 * @param q - [B, H, T, K] @param k - [B, G, T, K], as v
 * @param options - as in {@link attention}, without a bias
 * @returns [B, H, T, K]
 */
export function selfAttention(
  owner: object,
  q: Tensor,
  k: Tensor,
  v: Tensor,
  options: Omit<AttentionOptions, "causal" | "bias"> = {},
): Tensor {
  return (
    attendInPages(owner, [q, k, v], options) ??
    attention(q, ...withPast(owner, k, v), { ...options, causal: true })
  );
}
