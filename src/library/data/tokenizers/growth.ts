import { refusal } from "./refusal.ts";

/** Unicode's own normal forms make up to 18 characters of one, and steps may put more in front of a word. */
const [MOST_GROWTH, FREE_GROWTH] = [32, 4_096];

/** The length that a `tokenizer.json` may make of a text of `length` UTF-16 units, all its steps together. */
export function longestOf(length: number): number {
  return MOST_GROWTH * length + FREE_GROWTH;
}

/** @throws {TroupeError} `TOKENIZER_INVALID` where a step makes more of a text than {@link longestOf} says */
export function checkGrowth(length: number, longest: number): void {
  if (length <= longest) return;
  throw refusal(
    `a tokenizer that makes at most ${MOST_GROWTH} characters of each and ${FREE_GROWTH} besides`,
    `${length}, where ${longest} are the most`,
  );
}
