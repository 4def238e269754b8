import type { TokenArray } from "./token-dtype.ts";

/**
 * A tokenizer as plain data: can be sent in messages and stored in a checkpoint, and `tokenizerFromSpec` recreates the
 * same tokenizer without any file.
 */
export type TokenizerSpec =
  | { readonly kind: "byte" }
  /** `characters`: every character of the vocabulary once; a character's position is its token. */
  | { readonly kind: "character"; readonly characters: string }
  /** `tokenizer`: the content of a Hugging Face `tokenizer.json`. */
  | { readonly kind: "hugging-face"; readonly tokenizer: Readonly<Record<string, unknown>> };

/**
 * Where a text may be cut so that the encodings of its parts, concatenated, equal the encoding of the text. Characters
 * are never cut in two.
 */
export type LegalCuts = "between-characters" | "before-whitespace" | "nowhere";

/** Text to tokens and back. Immutable and synchronous. */
export interface Tokenizer {
  /** Upper bound of its tokens, exclusive. */
  readonly vocabSize: number;
  readonly spec: TokenizerSpec;
  readonly legalCuts: LegalCuts;

  /**
   * Encodes `text`, without adding special tokens.
   * @throws {TroupeError} `TOKENIZER_UNKNOWN_CHARACTER` where the vocabulary lacks one
   */
  encode(text: string): TokenArray;

  /** Decodes `tokens`. Tokens outside the vocabulary (a model's may be padded beyond it) and broken UTF-8 become U+FFFD. */
  decode(tokens: Iterable<number>): string;
}
