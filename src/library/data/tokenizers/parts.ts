import type { Span } from "./aligned-text.ts";

/** Splits a text at its special tokens, and yields both. */
export function* partsOf(
  text: string,
  specials: readonly string[],
): Generator<{ readonly span: Span; readonly isSpecial: boolean }> {
  let begin = 0;
  for (let at = 0; at < text.length; ) {
    const special = specials.find((each) => text.startsWith(each, at));
    if (special === undefined) {
      at++;
      continue;
    }
    yield { span: [begin, at], isSpecial: false };
    begin = at + special.length;
    yield { span: [at, begin], isSpecial: true };
    at = begin;
  }
  yield { span: [begin, text.length], isSpecial: false };
}
