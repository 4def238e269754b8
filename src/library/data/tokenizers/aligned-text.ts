/** The range of a token in its text, in UTF-16 units, end exclusive, as `slice` takes it. */
export type Span = readonly [begin: number, end: number];

/** A character of a normalized text, and the range of the original text that it comes from. */
export interface AlignedCharacter {
  readonly character: string;
  /** The range of one character; empty if it was inserted. */
  readonly span: Span;
}

/** A normalized text, character by character. */
export type AlignedText = readonly AlignedCharacter[];

/**
 * A character that a step of normalization makes, and its change: 0: it replaces one character; 1: it replaces none and
 * is inserted after the one before; −n: it replaces one, and the n after that are removed. Hugging Face's tokenizers
 * count like this: several that become one count as the first.
 */
export type Made = readonly [character: string, change: number];

/** Returns every character with its range: the argument of `text.slice(...span)`. */
export function aligned(text: string, begin = 0): AlignedText {
  let at = begin;
  return Array.from(text, (character) => {
    const from = at;
    at += character.length;
    return { character, span: [from, at] };
  });
}

/** Returns the text without ranges. */
export function plain(text: AlignedText): string {
  return text.map(({ character }) => character).join("");
}

/** Applies a normalization's result to a text: each new character gets the range of the one that it replaces. */
export function madeOf(text: AlignedText, made: Iterable<Made>): AlignedText {
  let next = 0;
  return Array.from(made, ([character, change]) => {
    const from = text[change > 0 ? next - 1 : next];
    if (change <= 0) next += 1 - change;
    // A character inserted before all others has an empty range.
    const begin = text[0]?.span[0] ?? 0;
    return { character, span: from?.span ?? [begin, begin] };
  });
}
