import { IGNORE_INDEX } from "../../compute/nn/index.ts";
import { type Tensor, tensor } from "../../compute/tensor/index.ts";
import type { TokenArray } from "../../library/data/index.ts";

/** Tokens, or a value for each token. */
export type TokenList = readonly number[] | TokenArray;

/** Texts packed into one row for a causal model; they do not attend to each other. int64 */
export type PackedTexts = {
  /** [1, width] */
  readonly inputIds: Tensor;
  /** [1, width], the inputs; −100 at each text's first token, which no text predicts, and at padding. */
  readonly labels: Tensor;
  /** [n + 1], start of each text, and end of the last. */
  readonly segments: Tensor;
};

/**
 * Packs texts into one row, as `--packing` does, for a custom collate function. The width is rounded up to a multiple of `multiple`
 * (default 1) with the token `padding` (default 0). Labels are the texts themselves, unless `labels` has one for each.
 */
export function packTexts(
  texts: readonly TokenList[],
  {
    multiple = 1,
    padding = 0,
    labels: labelled = texts,
  }: { readonly multiple?: number; readonly padding?: number; readonly labels?: readonly TokenList[] } = {},
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
      if (place > 0) labels[at] = BigInt(labelled[index]?.[place] ?? IGNORE_INDEX);
    }
  return {
    inputIds: tensor(ids, { shape: [1, width] }),
    labels: tensor(labels, { shape: [1, width] }),
    segments: tensor(bounds, { dtype: "int64" }),
  };
}
