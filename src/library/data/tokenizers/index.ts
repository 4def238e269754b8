/** Tokenizers: their kinds, rows of several texts, and the ranges of tokens in a text. */

export type { Span } from "./aligned-text.ts";
export { CharacterSet, CharacterTokenizer } from "./character.ts";
export { publishedPatterns } from "./engine.ts";
export { HuggingFaceTokenizer } from "./hugging-face.ts";
export * from "./joined-texts.ts";
export { loadGpt2Tokenizer, loadTokenizer, tokenizerFromSpec } from "./load.ts";
export { byteLetters } from "./spans.ts";
export type { TokenArray, TokenDType } from "./token-dtype.ts";
export type { LegalCuts, Tokenizer, TokenizerSpec } from "./tokenizer.ts";
export { loadWordPiece, type WordPieceOptions } from "./word-piece.ts";
