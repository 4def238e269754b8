/** Text to tokens, tokens to windows: tokenizers, the cache of encoded text, and the order of samples. */
export { ByteTokenizer } from "./byte-tokenizer.ts";
export { CharacterSet, CharacterTokenizer } from "./character-tokenizer.ts";
export {
  type Batch,
  type Dataset,
  type DatasetFacts,
  type Rows,
  type Scores,
  type TextBatch,
  textDataset,
} from "./dataset.ts";
export { HuggingFaceTokenizer } from "./hugging-face-tokenizer.ts";
export { loadGpt2Tokenizer, loadTokenizer, tokenizerFromSpec } from "./load-tokenizer.ts";
export {
  checkVocabulary,
  defaultCacheDir,
  type PreparedText,
  prepareText,
  type TextOptions,
  type TokenizerChoice,
} from "./prepare-text.ts";
export { passOver, type SamplerState, samplesBefore } from "./sampler-state.ts";
export type { TextSource } from "./text-source.ts";
export { type TextWindows, textWindows, type WindowOptions } from "./text-windows.ts";
export { type TokenArray, type TokenDType, tensorDType } from "./token-dtype.ts";
export { readTokens, type TokenFile } from "./token-file.ts";
export type { LegalCuts, Tokenizer, TokenizerSpec } from "./tokenizer.ts";
