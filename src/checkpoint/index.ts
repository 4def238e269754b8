export {
  adapterConfigName,
  adapterWeightsName,
  adapterWeightsStem,
  saveAdapterFolder,
} from "./adapter-folder.ts";
/** Named bytes to the disk and back: safetensors, Hugging Face folders, and checkpoints that survive a crash. */
export type { Bytes, TensorRange } from "./bytes.ts";
export { Checkpoint } from "./checkpoint.ts";
export {
  CheckpointDraft,
  type CheckpointPlan,
  type SavedCheckpoint,
  type SaveOptions,
} from "./checkpoint-draft.ts";
export { fromSafetensorsDType, type TensorDTypeName, toSafetensorsDType } from "./dtype.ts";
export { HuggingFaceFolder, type SaveFolderOptions, saveHuggingFaceFolder } from "./hugging-face.ts";
export { type CheckpointFacts, listCheckpoints } from "./inventory.ts";
export { joinFolders } from "./join-folders.ts";
export { LocalFolder, type LocalFolderOptions } from "./local-folder.ts";
export type { LogicalTensor, Manifest, Slice, TrainerState } from "./manifest.ts";
export { type AdapterTexts, type ModelTexts, textsAfter } from "./model-texts.ts";
export { newestFirst, type OpenCheckpointOptions, openCheckpoint, placeOf } from "./open-checkpoint.ts";
export { openStorage } from "./open-storage.ts";
export { type KeepRule, type Pruned, plannedPrune, prune } from "./prune.ts";
export {
  type Relay,
  type RelayedBytes,
  RelayedFolder,
  type RelayedRead,
  readForOthers,
} from "./relayed-folder.ts";
export {
  type OwnerRecord,
  ownerOf,
  putOwner,
  type RunEnd,
  type RunRecord,
  type RunStanding,
  runOf,
  savedAt,
  stampOf,
  standingOf,
  takeEmpty,
  takeOver,
} from "./run-record.ts";
export { type OpenOptions, SafetensorsFile, type TensorPart } from "./safetensors-file.ts";
export { isDType, type SafetensorsDType, type TensorEntry, tensorSizeBytes } from "./safetensors-header.ts";
export {
  pytorchMetadata,
  type TensorBytes,
  type TensorSource,
  writeSafetensors,
} from "./safetensors-writer.ts";
export { type CheckpointContent, type CheckpointSource, writeCheckpoint } from "./save-checkpoint.ts";
export { type Box, boxesOfRun, liesIn } from "./slices.ts";
export { stepFolder, stepOf } from "./step-folder.ts";
export type {
  CheckpointStorage,
  FileSink,
  FileSums,
  ReadHow,
  StorageDraft,
  StorageHolder,
  StorageLock,
  StoredFile,
  StoredFolder,
} from "./storage.ts";
export { type JsonObject, type JsonValue, parseJsonObject } from "./strict-json.ts";
export { CHUNK_BYTES, crc32c } from "./summed-file.ts";
export {
  entryOf,
  type PlannedTensor,
  type PlannedTensors,
  TensorFiles,
  type WrittenTensors,
  weightsStem,
} from "./tensor-files.ts";
export { type Damage, type VerifyOptions, verifyCheckpoint } from "./verify.ts";
