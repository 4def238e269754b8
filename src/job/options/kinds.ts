import * as z from "zod";

// The error of each kind completes the sentence `expected ranks to be …`: zod returns it with its issues.

/** Joins the expectation and the hint of an error into one text for zod. */
export function withHint(expected: string, hint: string): string {
  return `${expected}\n${hint}`;
}

/** @returns the two parts that {@link withHint} joined */
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

/** A whole number of steps; Infinity: never. */
export function cadence() {
  const expected = "a whole number ≥ 1";
  return z.union([whole(1), z.literal(Number.POSITIVE_INFINITY)], { error: expected });
}

/** Any number for which `holds` is true, Infinity included. */
export function number(expected: string, holds: (value: number) => boolean) {
  const any = z.union([z.number(), z.literal(Number.POSITIVE_INFINITY)], { error: expected });
  return any.refine(holds, { error: expected });
}

/** One of several words. */
export function oneOf<const Words extends readonly [string, ...string[]]>(words: Words) {
  return z.enum(words, { error: words.join(" or ") });
}

/** On or off. */
export const toggle = () => z.boolean({ error: "true or false" });

/** A text that is not empty. */
export function text(expected: string) {
  return z.string({ error: expected }).min(1, { error: expected });
}

/** Options of one subject; unknown names are refused. */
export function options<Shape extends z.core.$ZodShape>(shape: Shape, expected = "an object of options") {
  return z.strictObject(shape, { error: expected });
}
