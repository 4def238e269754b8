export { type GeneratedText, generate, generateTexts } from "./generate.ts";
export type { GenerativeModel, Seq2SeqModel } from "./generative-model.ts";
export {
  checkGenerateOptions,
  type GenerateOptions,
  specialTokensOf,
  type TextCodec,
  type WrittenToken,
} from "./options.ts";
