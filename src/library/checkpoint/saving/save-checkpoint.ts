import type { TrainerState } from "../format/manifest.ts";
import { byName, partsOf, type TensorBytes } from "../format/safetensors-writer.ts";
import { openStorage } from "../open-storage.ts";
import type { CheckpointStorage } from "../storage/storage.ts";
import {
  CheckpointDraft,
  type CheckpointPlan,
  type SavedCheckpoint,
  type SaveOptions,
} from "./checkpoint-draft.ts";
import { saveFailed } from "./save-failed.ts";
import { entryOf, type PlannedTensor } from "./tensor-files.ts";

/** A tensor to save, or a part of one, whose bytes are requested when they are written. */
export interface CheckpointSource extends PlannedTensor {
  /** Row-major and little-endian. May return parts, so that only a part of a tensor need be in memory. */
  read(): TensorBytes | Promise<TensorBytes>;
}

/** Everything that a checkpoint contains. */
export interface CheckpointContent extends Omit<CheckpointPlan, "step"> {
  readonly state: TrainerState;
  readonly weights: readonly CheckpointSource[];
  readonly optimizer: readonly CheckpointSource[];
}

/**
 * Saves a checkpoint into a new folder and lets `latest` name it. Either it is complete and on the disk, or it does not exist;
 * earlier checkpoints are never changed. The folder is also a Hugging Face model folder. Sources are read one after the other,
 * and equal contents give equal files, whatever their order.
 * @param place - a storage, or the folder of a run; only one process at a time may save into it
 * @throws {TroupeError} `CHECKPOINT_SAVE_FAILED` with the first cause: the disk is full or failing, or a source threw an error
 */
export async function writeCheckpoint(
  place: CheckpointStorage | string,
  content: CheckpointContent,
  options: SaveOptions = {},
): Promise<SavedCheckpoint> {
  const { state, weights, optimizer, ...texts } = content;
  const storage = typeof place === "string" ? await openStorage(place) : place;
  await using draft = await CheckpointDraft.begin(
    storage,
    { ...texts, step: state.step, weights: weights.toSorted(byName), optimizer: optimizer.toSorted(byName) },
    options,
  );
  try {
    const sources = new Map([...weights, ...optimizer].map((source) => [entryOf(source), source]));
    for (const entry of draft.order) {
      for await (const part of partsOf(await sources.get(entry)!.read())) await draft.write(entry, part);
    }
  } catch (cause) {
    throw saveFailed(draft.path, state.step, cause);
  }
  return await draft.commit(state);
}
