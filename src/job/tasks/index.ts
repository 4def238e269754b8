/** Tasks: their examples, batches, losses, predictions and scores. */

export {
  audioClassification,
  type LabelledRecording,
  type LabelledRecordings,
} from "./audio-classification.ts";
export { causalLm, type TextWindowBatch } from "./causal-lm.ts";
export { type AnyTask, taskModel, taskNamed, taskNames } from "./definitions.ts";
export { imageClassification, type LabelledPicture, type LabelledPictures } from "./image-classification.ts";
export { type DescribedPicture, type DescribedPictures, imageText } from "./image-text.ts";
export { type GappedTexts, maskedLm } from "./masked-lm.ts";
export { type PackedTexts, packTexts, type TokenList } from "./pack-texts.ts";
export { type Question, type Questions, questionAnswering } from "./question-answering.ts";
export { seq2seqLm, type TextPair, type TextPairs } from "./seq2seq-lm.ts";
export { type LabelledTexts, sequenceClassification, type TextExample } from "./sequence-classification.ts";
export { type BareRecording, type MaskedRecordings, speechPretraining } from "./speech-pretraining.ts";
export { type SpokenText, type SpokenTexts, speechRecognition } from "./speech-recognition.ts";
export type {
  DynamicShapes,
  Examples,
  TaskData,
  TaskDefinition,
  TaskFacts,
  WeighedTask,
} from "./task.ts";
export type { TextTensors } from "./text-rows.ts";
export { type TaggedTexts, tokenClassification } from "./token-classification.ts";
