export { draw } from "./drawing.ts";
export { type GenerativeModel, generate } from "./generate.ts";
export { checkGenerateOptions, type GenerateOptions, specialTokensOf } from "./options.ts";
export type { Seq2SeqModel } from "./writer.ts";
