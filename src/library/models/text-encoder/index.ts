export { QuestionAnswerer, SequenceClassifier, type SpanBatch, TokenClassifier } from "./classifiers.ts";
export { EncoderWithHead } from "./encoder-with-head.ts";
export type { HeadConfig, HeadNeeds, TextEncoder, TextEncoderFamily } from "./text-encoder.ts";
export { MaskedLanguageModel, WordHead } from "./word-head.ts";
