export { type Blend, blend, blendSizes } from "./blend.ts";
export { type MegatronGptOptions, megatronGptDataset, megatronGptSamples } from "./gpt-dataset.ts";
export { gptSamples, gptTokens } from "./gpt-samples.ts";
export { IndexedDataset, type IndexedDType, type IndexedFormat } from "./indexed-dataset.ts";
export { IndexedWriter, indexedDTypeFor } from "./indexed-writer.ts";
export { type DocumentEnds, documentPlaces } from "./left-to-right.ts";
export type { IndexedSamples, SplitName } from "./parts.ts";
export { type PreprocessDone, type PreprocessOptions, preprocess } from "./preprocess/preprocess.ts";
export { type PunktModel, punktSentences, readPunkt } from "./preprocess/punkt.ts";
export { type MegatronBertOptions, maskVocabulary, megatronBertSamples } from "./sentences/bert-dataset.ts";
export { type BertSample, bertSample } from "./sentences/bert-sample.ts";
export type { MaskVocabulary } from "./sentences/masked-tokens.ts";
export { sentenceSamples } from "./sentences/sentence-samples.ts";
export {
  type MegatronT5Options,
  megatronT5Samples,
  type T5Vocabulary,
  t5Vocabulary,
} from "./sentences/t5-dataset.ts";
export { type T5Sample, t5Sample } from "./sentences/t5-sample.ts";
export { type DocumentSplitRule, splitRanges } from "./split-ranges.ts";
