/** Named bytes to the disk and back: safetensors, Hugging Face folders, and checkpoints that survive a crash. */
export {
  type Checkpoint,
  type CheckpointContent,
  readCheckpoint,
  stepFolder,
  writeCheckpoint,
} from "./checkpoint.ts";
export { commitDirectory, sweepLeftovers } from "./commit-directory.ts";
export { fromSafetensorsDType, type TensorDTypeName, toSafetensorsDType } from "./dtype.ts";
export type { FileFacts } from "./durable-file.ts";
export { HuggingFaceFolder, saveHuggingFaceFolder } from "./hugging-face.ts";
export { type OpenOptions, SafetensorsFile } from "./safetensors-file.ts";
export type { SafetensorsDType, TensorEntry } from "./safetensors-header.ts";
export {
  pytorchMetadata,
  type TensorBytes,
  type TensorSource,
  writeSafetensors,
} from "./safetensors-writer.ts";
export { type JsonObject, type JsonValue, parseJsonObject } from "./strict-json.ts";
export type { TrainerState } from "./trainer-record.ts";
