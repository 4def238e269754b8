import * as z from "zod";

// Every kind carries what it expects as words of a sentence, `expected ranks to be …`: zod hands them back with its issues.

/** What is expected, and what to do about it. */
export function withHint(expected: string, hint: string): string {
  return `${expected}\n${hint}`;
}

/** @returns the two parts of {@link withHint} */
export function parted(message: string): { readonly expected: string; readonly hint?: string } {
  const [expected = "", hint] = message.split("\n");
  return { expected, ...(hint === undefined ? {} : { hint }) };
}

/** A whole number within bounds. */
export function whole(lowest: number, highest = Number.MAX_SAFE_INTEGER) {
  const range = highest === Number.MAX_SAFE_INTEGER ? `≥ ${lowest}` : `from ${lowest} to ${highest}`;
  const expected = `a whole number ${range}`;
  return z.int({ error: expected }).min(lowest, { error: expected }).max(highest, { error: expected });
}

/** A whole number of steps; Infinity where it never comes to it. */
export function cadence() {
  const expected = "a whole number ≥ 1";
  return z.union([whole(1), z.literal(Number.POSITIVE_INFINITY)], { error: expected });
}

/** Any number that passes a test, Infinity too where the test lets it. */
export function number(expected: string, holds: (value: number) => boolean) {
  const any = z.union([z.number(), z.literal(Number.POSITIVE_INFINITY)], { error: expected });
  return any.refine(holds, { error: expected });
}

/** One of some words. */
export function oneOf<const Words extends readonly [string, ...string[]]>(
  words: Words,
  expected = words.join(" or "),
) {
  return z.enum(words, { error: expected });
}

/** On or off. */
export const toggle = () => z.boolean({ error: "true or false" });

/** A text that says something. */
export function text(expected: string) {
  return z.string({ error: expected }).min(1, { error: expected });
}

/** Options of one subject; a name that is none of them is refused. */
export function options<Shape extends z.core.$ZodShape>(shape: Shape, expected = "an object of options") {
  return z.strictObject(shape, { error: expected });
}
