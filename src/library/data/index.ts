/** Data: tokenizers, the cache of encoded text, datasets, and the order of samples. */

export * from "../../compute/samples.ts";
export {
  type Batch,
  type BatchValue,
  disposeBatch,
  type HostValue,
  mapBatch,
  type TensorBatch,
  type TensorsOf,
  tensorsIn,
} from "./batch.ts";
export {
  attachBatch,
  type BatchReader,
  type BatchRefs,
  BuiltBatches,
  type SampleRange,
} from "./built-batches.ts";
export * from "./chats/index.ts";
export { checkDataset, checkFingerprint, checkNumTokens, checkScores } from "./check-dataset.ts";
export type { Awaitable, Dataset, DatasetFacts, Fingerprint, Rows, Scores, Split } from "./dataset.ts";
export * from "./formats/index.ts";
export { type HiddenTokens, type HidingOptions, hideTokens } from "./hide-tokens.ts";
export { type FrameMaskOptions, type MaskedFrames, maskFrames } from "./mask-frames.ts";
export * from "./megatron/index.ts";
export {
  changedFiles,
  dataChanged,
  type FileMarks,
  fileMarks,
  markFolders,
  noteFile,
} from "./noted-files.ts";
export * from "./records/index.ts";
export { fitPicture, type PictureSize, type ResizeFilter, resizePixels } from "./resize.ts";
export * from "./sample-dataset.ts";
export { type SampleRecord, type Stacked, stack } from "./stack.ts";
export { checkVocabulary, prepareText, type TextOptions, type TokenizerChoice } from "./text/prepare-text.ts";
export { type TextBatch, type TextDataset, type TextFacts, textDataset } from "./text/text-dataset.ts";
export { hashFiles, type TextSource } from "./text/text-source.ts";
export { type TextWindows, textWindows, type WindowOptions } from "./text/text-windows.ts";
export type { TokenFile } from "./text/token-file.ts";
export * from "./tokenizers/index.ts";
