import type { Made } from "./aligned-text.ts";

/** Unicode's normalization forms. */
export type UnicodeForm = "NFC" | "NFD" | "NFKC" | "NFKD";

/**
 * Computes `text.normalize(form)` character by character: the parts of a decomposed character belong to it, the first
 * in its place; a composed one belongs to the first of its parts. Source: Unicode Standard Annex 15, with the counts of
 * Hugging Face's tokenizers.
 */
export function normalForm(text: string, form: UnicodeForm): Made[] {
  if (text.normalize(form) === text) return Array.from(text, (character) => [character, 0] as const);
  const parts = inOrder(decomposed(text, form === "NFC" || form === "NFD" ? "NFD" : "NFKD"));
  return form === "NFC" || form === "NFKC" ? composed(parts) : parts;
}

function decomposed(text: string, form: "NFD" | "NFKD"): Made[] {
  return Array.from(text).flatMap((character) =>
    Array.from(character.normalize(form), (part, index): Made => [part, index === 0 ? 0 : 1]),
  );
}

/** Sorts the marks after a letter by their classes, stably. */
function inOrder(parts: readonly Made[]): Made[] {
  const ordered: Made[] = [];
  for (const part of parts) {
    let at = ordered.length;
    if (isMark(part[0])) while (at > 0 && sortsAfter((ordered[at - 1] as Made)[0], part[0])) at--;
    ordered.splice(at, 0, part);
  }
  return ordered;
}

/** Composes a mark with the last letter unless another of its class is between them. */
function composed(parts: readonly Made[]): Made[] {
  const all: Made[] = [];
  /** Index of the last letter in `all`; the marks after it did not compose with it. */
  let letter: number | undefined;
  for (const part of parts) {
    const [character, change] = part;
    const last = all.length - 1;
    const isNext = letter === last;
    const isBlocked =
      !isNext && !(isMark(character) && sortsAfter(character, (all[last] as Made | undefined)?.[0] ?? ""));
    const base = letter === undefined ? undefined : all[letter];
    const both = base === undefined || isBlocked ? undefined : joined(base[0], character);
    if (base !== undefined && both !== undefined) {
      all[letter as number] = [both, base[1] + change - 1];
      continue;
    }
    all.push(part);
    if (!isMark(character)) letter = all.length - 1;
  }
  return all;
}

function joined(letter: string, part: string): string | undefined {
  const both = (letter + part).normalize("NFC");
  return both.length === String.fromCodePoint(both.codePointAt(0) as number).length ? both : undefined;
}

const marks = new Map<string, boolean>();
/** A mark of the lowest and one of the highest combining class. */
const [OF_FIRST_CLASS, OF_LAST_CLASS] = ["\u0334", "\u0345"];

/** Whether a character has a combining class, by which marks are sorted. */
function isMark(character: string): boolean {
  if (!/\p{M}/u.test(character)) return false;
  const is =
    marks.get(character) ?? (sortsAfter(character, OF_FIRST_CLASS) || sortsAfter(OF_LAST_CLASS, character));
  marks.set(character, is);
  return is;
}

/** Whether a mark's class is higher than another's, so that it is sorted after it. */
function sortsAfter(mark: string, other: string): boolean {
  return mark !== other && (mark + other).normalize("NFD") === other + mark;
}
