export { adapterConfigName, adapterWeightsName, saveAdapterFolder } from "./format/adapter-folder.ts";
export { type Companions, isCompanion, withoutTokenizer } from "./format/companions.ts";
export { toSafetensorsDType } from "./format/dtype.ts";
export type { LogicalTensor, Manifest, Slice, TrainerState } from "./format/manifest.ts";
export { type AdapterTexts, type ModelTexts, textsAfter } from "./format/model-texts.ts";
export { type OpenOptions, SafetensorsFile } from "./format/safetensors-file.ts";
export {
  isDType,
  type SafetensorsDType,
  type TensorEntry,
  tensorSizeBytes,
} from "./format/safetensors-header.ts";
export {
  pytorchMetadata,
  type TensorBytes,
  type TensorSource,
  writeSafetensors,
} from "./format/safetensors-writer.ts";
export { type Box, boxesOfRun, liesIn } from "./format/slices.ts";
export { stepFolder, stepOf } from "./format/step-folder.ts";
export { type JsonObject, type JsonValue, parseJsonObject } from "./format/strict-json.ts";
export type { TensorFile, TensorPart } from "./format/tensor-file.ts";
export { TorchFile } from "./format/torch-file.ts";
export {
  HuggingFaceFolder,
  hasWeights,
  readTexts,
  type SaveFolderOptions,
  saveHuggingFaceFolder,
} from "./hugging-face.ts";
export { openStorage } from "./open-storage.ts";
export { Checkpoint } from "./reading/checkpoint.ts";
export { isOfCheckpoint } from "./reading/folder-contents.ts";
export { type CheckpointFacts, listCheckpoints } from "./reading/inventory.ts";
export { checkStateName, nameState, type StateName } from "./reading/named-states.ts";
export { noCheckpoint } from "./reading/no-checkpoint.ts";
export * from "./reading/open-checkpoint.ts";
export * from "./reading/relayed-folder.ts";
export {
  type OwnerRecord,
  ownerOf,
  putOwner,
  type RunEnd,
  type RunRecord,
  type RunStanding,
  refuseOthersFiles,
  runOf,
  stampOf,
  standingOf,
  takeEmpty,
  takeOver,
} from "./reading/run-record.ts";
export { type Damage, type VerifyOptions, verifyCheckpoint } from "./reading/verify.ts";
export { CheckpointDraft, type SavedCheckpoint, type SaveOptions } from "./saving/checkpoint-draft.ts";
export { joinFolders } from "./saving/join-folders.ts";
export { type KeepRule, type Pruned, plannedPrune, prune, pruneAfterSave } from "./saving/prune.ts";
export { type CheckpointContent, type CheckpointSource, writeCheckpoint } from "./saving/save-checkpoint.ts";
export {
  entryOf,
  type PlannedTensor,
  TensorFiles,
  type WrittenTensors,
  weightsStem,
} from "./saving/tensor-files.ts";
/** Named bytes to the disk and back: safetensors, Hugging Face folders, and checkpoints that survive a crash. */
export type { Bytes, TensorRange } from "./storage/bytes.ts";
export { LocalFolder } from "./storage/local-folder.ts";
export type {
  CheckpointStorage,
  FileSink,
  FileSums,
  StorageDraft,
  StorageHolder,
  StorageLock,
  StorageOptions,
  StoredFile,
  StoredFolder,
} from "./storage/storage.ts";
export { CHUNK_BYTES, crc32c } from "./storage/summed-file.ts";
