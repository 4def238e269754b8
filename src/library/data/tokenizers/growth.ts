import { refusal } from "./refusal.ts";

/** Unicode's normal forms make up to 18 characters of one, and steps may add some in front of a word. */
const [MOST_GROWTH, FREE_GROWTH] = [32, 4_096];

/** The longest text that a `tokenizer.json` may make of `length` UTF-16 units, with all its steps together. */
export function longestOf(length: number): number {
  return MOST_GROWTH * length + FREE_GROWTH;
}

/**
 * Checks the length of a step's result.
 * @throws {TroupeError} `TOKENIZER_INVALID` where it exceeds {@link longestOf}
 */
export function checkGrowth(length: number, longest: number): void {
  if (length <= longest) return;
  throw refusal(
    `a tokenizer that makes at most ${MOST_GROWTH} characters of each and ${FREE_GROWTH} besides`,
    `${length}, where ${longest} are the most`,
  );
}
