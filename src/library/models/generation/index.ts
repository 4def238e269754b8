export { type GeneratedText, type GenerativeModel, generate, generateTexts } from "./generate.ts";
export {
  checkGenerateOptions,
  type GenerateOptions,
  specialTokensOf,
  type TextCodec,
  type WrittenToken,
} from "./options.ts";
export type { Seq2SeqModel } from "./writer.ts";
