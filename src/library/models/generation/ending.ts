import type { Settled } from "./options.ts";

/** Tokens of a tokenizer that a stop text may begin in before its first character. */
const SPARE_TOKENS = 4;

/** Where texts end, and how they read. */
export class Ending {
  readonly #options: Pick<Settled, "stopTokens" | "stopTexts" | "tokenizer">;
  /** Maximum number of tokens that a stop text reaches into: each has a byte at least. */
  readonly #reach: number;

  constructor(options: Pick<Settled, "stopTokens" | "stopTexts" | "tokenizer">) {
    const { stopTexts } = options;
    this.#options = options;
    this.#reach = Math.max(0, ...stopTexts.map((text) => Buffer.byteLength(text))) + SPARE_TOKENS;
  }

  /** Whether the last of the tokens written so far ends the text. */
  isReached(written: readonly number[]): boolean {
    const { stopTokens, stopTexts, tokenizer } = this.#options;
    if (stopTokens.includes(written.at(-1) as number)) return true;
    if (stopTexts.length === 0) return false;
    const tail = tokenizer?.decode(written.slice(-this.#reach)) ?? "";
    return stopTexts.some((text) => tail.includes(text));
  }

  /** The text of the tokens written, without the stop token or text that ended it; undefined without a tokenizer. */
  textOf(written: readonly number[]): string | undefined {
    const { stopTokens, stopTexts, tokenizer } = this.#options;
    if (tokenizer === undefined) return undefined;
    const isStopped = stopTokens.includes(written.at(-1) as number);
    const text = tokenizer.decode(isStopped ? written.slice(0, -1) : written);
    const ends = stopTexts.map((stop) => text.indexOf(stop)).filter((place) => place >= 0);
    return text.slice(0, ends.length === 0 ? undefined : Math.min(...ends));
  }
}
