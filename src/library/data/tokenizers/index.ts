/** Text to tokens and back: what a tokenizer is, the kinds there are, rows of several texts, where tokens stand. */

export type { Span } from "./aligned-text.ts";
export { CharacterSet, CharacterTokenizer } from "./character.ts";
export { HuggingFaceTokenizer } from "./hugging-face.ts";
export {
  type JoinedTexts,
  type JoinOptions,
  joinTexts,
  longestFirst,
  type Truncation,
} from "./joined-texts.ts";
export { loadGpt2Tokenizer, loadTokenizer, tokenizerFromSpec } from "./load.ts";
export type { TokenArray, TokenDType } from "./token-dtype.ts";
export type { LegalCuts, Tokenizer, TokenizerSpec } from "./tokenizer.ts";
export { loadWordPiece, type WordPieceOptions } from "./word-piece.ts";
