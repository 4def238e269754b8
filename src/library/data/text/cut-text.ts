import type { LegalCuts } from "../tokenizers/tokenizer.ts";

/**
 * Regroups a text that arrives in parts into parts of at least `minCharacters` (the last may be shorter) that a
 * tokenizer may encode separately.
 * @param parts - the text; no part cuts a character in two
 * @param legalCuts - where the tokenizer allows a cut; "nowhere" gives a single part
 */
export async function* cutText(
  parts: AsyncIterable<string>,
  legalCuts: LegalCuts,
  minCharacters: number,
): AsyncGenerator<string> {
  let held: string[] = [];
  let numHeld = 0;
  for await (const part of parts) {
    const cut = numHeld + part.length >= minCharacters ? lastLegalCut(part, legalCuts) : 0;
    if (cut > 0) {
      yield held.join("") + part.slice(0, cut);
      held = [];
      numHeld = 0;
    }
    held.push(part.slice(cut));
    numHeld += part.length - cut;
  }
  if (numHeld > 0) yield held.join("");
}

/** The last index at which `part` may be cut, possibly its end; 0 where there is none. */
function lastLegalCut(part: string, legalCuts: LegalCuts): number {
  if (legalCuts === "nowhere") return 0;
  if (legalCuts === "between-characters") return part.length;
  for (let index = part.length - 1; index > 0; index--) {
    if (isSpace(part, index) && !isSpace(part, index - 1)) return index;
  }
  return 0;
}

const isSpace = (text: string, index: number): boolean => /\s/u.test(text.charAt(index));
