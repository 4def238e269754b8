/** Where a token stands in its text: from the first to behind the last UTF-16 unit, as `slice` takes them. */
export type Span = readonly [begin: number, end: number];

/** A character of a normalized text, and what it was made of in the text as it was given. */
export interface AlignedCharacter {
  readonly character: string;
  /** Of one character, or of none where it was put in. */
  readonly span: Span;
}

/** A normalized text, character by character. */
export type AlignedText = readonly AlignedCharacter[];

/**
 * A character that a step of normalization makes, and what it stands for: 0: of the character that it takes the place of; 1: of none, it is
 * put in behind the one before; −n: of one, and the n behind that are gone. As Hugging Face's tokenizers count, for whom several that become one are
 * the first of them.
 */
export type Made = readonly [character: string, change: number];

/** @returns every character with its place: what `text.slice(...span)` gives */
export function aligned(text: string, begin = 0): AlignedText {
  let at = begin;
  return Array.from(text, (character) => {
    const from = at;
    at += character.length;
    return { character, span: [from, at] };
  });
}

/** @returns the text without its places */
export function plain(text: AlignedText): string {
  return text.map(({ character }) => character).join("");
}

/** @returns what was made of a text, each character with the place of what it stands for */
export function madeOf(text: AlignedText, made: Iterable<Made>): AlignedText {
  let next = 0;
  return Array.from(made, ([character, change]) => {
    const from = text[change > 0 ? next - 1 : next];
    if (change <= 0) next += 1 - change;
    // What is put in front of all has the place of nothing.
    const begin = text[0]?.span[0] ?? 0;
    return { character, span: from?.span ?? [begin, begin] };
  });
}
