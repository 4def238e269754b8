import type { TokenArray } from "./token-dtype.ts";

/**
 * A tokenizer as plain data: travels in messages, is stored in a checkpoint, and gives the same tokenizer back
 * through `tokenizerFromSpec`, with no file needed.
 */
export type TokenizerSpec =
  | { readonly kind: "byte" }
  /** `characters`: every character of the vocabulary once; a character's position is its token. */
  | { readonly kind: "character"; readonly characters: string }
  /** `tokenizer`: the content of a Hugging Face `tokenizer.json`. */
  | { readonly kind: "hugging-face"; readonly tokenizer: Readonly<Record<string, unknown>> };

/**
 * Where a text may be cut so that the encodings of the parts, one after the other, are the encoding of the whole.
 * Characters are never cut in two.
 */
export type LegalCuts = "between-characters" | "before-whitespace" | "nowhere";

/** Text to tokens and back. Immutable and synchronous. */
export interface Tokenizer {
  /** Every token is below it. */
  readonly vocabSize: number;
  readonly spec: TokenizerSpec;
  readonly legalCuts: LegalCuts;

  /**
   * The tokens of `text`, nothing added at either end.
   * @throws {TroupeError} `TOKENIZER_UNKNOWN_CHARACTER` where the vocabulary lacks one
   */
  encode(text: string): TokenArray;

  /**
   * The text of `tokens`. Tokens outside the vocabulary (a model's may be padded beyond it) and broken UTF-8
   * read as U+FFFD.
   */
  decode(tokens: Iterable<number>): string;
}
