import { IGNORE_INDEX } from "../../compute/nn/index.ts";
import { type Tensor, tensor } from "../../compute/tensor/index.ts";
import type { TokenArray } from "../../library/data/index.ts";

/** Tokens, or something of each. */
export type TokenList = readonly number[] | TokenArray;

/** Texts behind each other in one row, none of which sees another: what a causal model reads. int64 */
export type PackedTexts = {
  /** [1, width] */
  readonly inputIds: Tensor;
  /** [1, width], the inputs themselves; −100 at each text's first token, which no other text foretells, and where the row is padded. */
  readonly labels: Tensor;
  /** [n + 1], where each text begins, and where the last ends. */
  readonly segments: Tensor;
};

/**
 * Lays texts side by side, as `--packing` does: for a collate function of one's own. The row's width is rounded up to a multiple of
 * `multiple`, 1 unless told otherwise, with the token `padding`, 0, behind the last text.
 */
export function packTexts(
  texts: readonly TokenList[],
  { multiple = 1, padding = 0 }: { readonly multiple?: number; readonly padding?: number } = {},
): PackedTexts {
  const bounds = [0];
  for (const text of texts) bounds.push((bounds.at(-1) ?? 0) + text.length);
  const numTokens = bounds.at(-1) ?? 0;
  const width = Math.ceil(numTokens / multiple) * multiple;
  const ids = new BigInt64Array(width).fill(BigInt(padding));
  const labels = new BigInt64Array(width).fill(BigInt(IGNORE_INDEX));
  for (const [index, text] of texts.entries())
    for (const [place, token] of text.entries()) {
      const at = (bounds[index] ?? 0) + place;
      ids[at] = BigInt(token);
      if (place > 0) labels[at] = BigInt(token);
    }
  return {
    inputIds: tensor(ids, { shape: [1, width] }),
    labels: tensor(labels, { shape: [1, width] }),
    segments: tensor(bounds, { dtype: "int64" }),
  };
}
