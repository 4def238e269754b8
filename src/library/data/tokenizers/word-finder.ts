import type { Span } from "./aligned-text.ts";

/** Finds words, such as special tokens, in texts: from left to right, at each place the longest. */
export class WordFinder {
  readonly #words: ReadonlySet<string>;
  /** By the first UTF-16 unit of words, their lengths, the longest first. */
  readonly #lengths: ReadonlyMap<string | undefined, readonly number[]>;

  constructor(words: readonly string[]) {
    this.#words = new Set(words.filter((word) => word !== ""));
    const byLength = [...this.#words].sort((a, b) => b.length - a.length);
    this.#lengths = new Map(
      [...Map.groupBy(byLength, (word) => word[0])].map(
        ([first, group]) => [first, [...new Set(group.map(({ length }) => length))]] as const,
      ),
    );
  }

  /** Cuts a text at the words, and yields the ranges of both; none is empty. */
  *partsOf(text: string): Generator<{ readonly span: Span; readonly isWord: boolean }> {
    let begin = 0;
    for (let at = 0; at < text.length; ) {
      const length = this.#lengths
        .get(text[at])
        ?.find((each) => at + each <= text.length && this.#words.has(text.slice(at, at + each)));
      if (length === undefined) {
        at++;
        continue;
      }
      if (at > begin) yield { span: [begin, at], isWord: false };
      begin = at + length;
      yield { span: [at, begin], isWord: true };
      at = begin;
    }
    if (text.length > begin) yield { span: [begin, text.length], isWord: false };
  }
}
