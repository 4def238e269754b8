/** Tasks: their examples, batches, losses, predictions and scores. */

export * from "./audio-classification.ts";
export { causalLm, type TextWindowBatch } from "./causal-lm.ts";
export { type ChatBatch, chatLm } from "./chat-lm.ts";
export * from "./definitions.ts";
export type { StoredPicture } from "./examples/pictures.ts";
export type { StoredSamples } from "./examples/recordings.ts";
export * from "./image-classification.ts";
export * from "./image-text.ts";
export * from "./masked-lm.ts";
export * from "./pack-texts.ts";
export * from "./question-answering.ts";
export type { BareRecording } from "./recording-dataset.ts";
export * from "./seq2seq-lm.ts";
export * from "./sequence-classification.ts";
export * from "./speech-pretraining.ts";
export * from "./speech-recognition.ts";
export type * from "./task.ts";
export type { TextTensors } from "./text-rows.ts";
export * from "./token-classification.ts";
