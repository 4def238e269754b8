import { philox4x32, wordsOf } from "./philox.ts";

/** Options of {@link hideTokens}. */
export interface HidingOptions {
  /** The mask token. */
  readonly mask: number;
  /** Random replacements are tokens below this. */
  readonly vocabSize: number;
  /** Share of the tokens in `mayHide` to select. Default: 0.15. */
  readonly share?: number;
  readonly seed: number;
  /** Number of the seed's draw, such as the position of the sample; the same draw hides the same tokens. */
  readonly draw: number;
}

/** A row with hidden tokens, and labels: −100 where nothing is predicted. */
export interface HiddenTokens {
  readonly ids: number[];
  readonly labels: number[];
}

/**
 * Hides some tokens for a model to fill in: of those selected, eight in ten become the mask, one another token, and one
 * stays. A row in which tokens may be hidden has at least one.
 * @param ids - tokens of a row
 * @param mayHide - which of them may be hidden
 * @see Devlin et al. 2018 §3.1, https://arxiv.org/abs/1810.04805
 */
export function hideTokens(
  ids: readonly number[],
  mayHide: readonly boolean[],
  { mask, vocabSize, share = 0.15, seed, draw }: HidingOptions,
): HiddenTokens {
  const key = wordsOf(seed);
  const [low, high] = wordsOf(draw);
  const drawn = ids.map((_, place) => philox4x32([place, 0x6d61736b, low, high], key));
  const uniform = (place: number, word: 0 | 1 | 2) => (drawn[place]?.[word] ?? 0) / 2 ** 32;
  const places = ids.flatMap((_, place) => (mayHide[place] ? [place] : []));
  const hidden = new Set(places.filter((place) => uniform(place, 0) < share));
  const least = places.toSorted((a, b) => uniform(a, 0) - uniform(b, 0))[0];
  if (least !== undefined) hidden.add(least);
  return {
    ids: ids.map((id, place) => {
      if (!hidden.has(place) || uniform(place, 1) >= 0.9) return id;
      return uniform(place, 1) < 0.8 ? mask : Math.floor(uniform(place, 2) * vocabSize);
    }),
    labels: ids.map((id, place) => (hidden.has(place) ? id : -100)),
  };
}
