import type { Made } from "./aligned-text.ts";

/** Unicode's forms of normalization. */
export type UnicodeForm = "NFC" | "NFD" | "NFKC" | "NFKD";

/**
 * `text.normalize(form)`, character by character: what a character is taken apart into stands for it, the first in its place, and a
 * composed one for the first that it was composed of. Source: Unicode Standard Annex 15, with the accounts that Hugging Face's tokenizers keep.
 */
export function normalForm(text: string, form: UnicodeForm): Made[] {
  if (text.normalize(form) === text) return Array.from(text, (character) => [character, 0] as const);
  const parts = inOrder(takenApart(text, form === "NFC" || form === "NFD" ? "NFD" : "NFKD"));
  return form === "NFC" || form === "NFKC" ? composed(parts) : parts;
}

function takenApart(text: string, form: "NFD" | "NFKD"): Made[] {
  return Array.from(text).flatMap((character) =>
    Array.from(character.normalize(form), (part, index): Made => [part, index === 0 ? 0 : 1]),
  );
}

/** Marks behind a letter in the order of their classes; of one class as they came. */
function inOrder(parts: readonly Made[]): Made[] {
  const ordered: Made[] = [];
  for (const part of parts) {
    let at = ordered.length;
    if (isMark(part[0])) while (at > 0 && goesBehind((ordered[at - 1] as Made)[0], part[0])) at--;
    ordered.splice(at, 0, part);
  }
  return ordered;
}

/** A mark joins the last letter unless one of its own class stands between. */
function composed(parts: readonly Made[]): Made[] {
  const all: Made[] = [];
  /** Where the last letter stands in `all`; behind it the marks that did not join it. */
  let letter: number | undefined;
  for (const part of parts) {
    const [character, change] = part;
    const last = all.length - 1;
    const isNext = letter === last;
    const isBlocked =
      !isNext && !(isMark(character) && goesBehind(character, (all[last] as Made | undefined)?.[0] ?? ""));
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
/** Marks of the first and the last of the combining classes that are any. */
const [OF_FIRST_CLASS, OF_LAST_CLASS] = ["\u0334", "\u0345"];

/** Whether it has a combining class, by which it changes places with others. */
function isMark(character: string): boolean {
  if (!/\p{M}/u.test(character)) return false;
  const is =
    marks.get(character) ?? (goesBehind(character, OF_FIRST_CLASS) || goesBehind(OF_LAST_CLASS, character));
  marks.set(character, is);
  return is;
}

/** Whether a mark's class is higher than that of another, which so changes places with it. */
function goesBehind(mark: string, other: string): boolean {
  return mark !== other && (mark + other).normalize("NFD") === other + mark;
}
