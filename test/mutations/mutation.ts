/** Tests that must notice it. */
export interface Catcher {
  /** From the repository's root. */
  readonly file: string;
  /** As a register names them: each on its own must fail. */
  readonly titles: readonly string[];
}

/** A small mistake in the product, and who must notice it. */
export interface Mutation {
  /** The mistake in words. Unique. */
  readonly name: string;
  /** A file of the product, from the repository's root. */
  readonly file: string;
  /** Text that stands in the file once. */
  readonly from: string;
  readonly to: string;
  readonly caughtBy: readonly Catcher[];
}

/**
 * @param text - of the mutation's file
 * @returns it with the mistake
 * @throws {Error} unless the text that is replaced stands there once: the product has moved on, the mutation must follow
 */
export function mutate(text: string, { name, file, from, to }: Mutation): string {
  const numPlaces = text.split(from).length - 1;
  if (numPlaces === 1 && from !== to) return text.replace(from, () => to);
  throw new Error(
    `[mutate] expected "${from}" once in ${file}, got it ${numPlaces} times (mend the mutation "${name}")`,
  );
}

/** @returns a pattern of the titles of a test with placeholders, as those of `it.each` */
export function titlePattern(title: string): RegExp {
  const literal = title.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  return new RegExp(literal.replace(/%[a-z]/g, ".*"));
}
