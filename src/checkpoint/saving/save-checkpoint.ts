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

/** A tensor to be saved, or a part of one, whose bytes are fetched when their turn comes. */
export interface CheckpointSource extends PlannedTensor {
  /** Row-major and little-endian; in parts, no more than a part of one tensor need be in memory. */
  read(): TensorBytes | Promise<TensorBytes>;
}

/** Everything a checkpoint keeps. */
export interface CheckpointContent extends Omit<CheckpointPlan, "step"> {
  readonly state: TrainerState;
  readonly weights: readonly CheckpointSource[];
  readonly optimizer: readonly CheckpointSource[];
}

/**
 * Saves a checkpoint into a folder of its own, then lets `latest` name it. It is either there whole, on the disk, or not
 * at all; what was saved before is kept whatever happens. The folder is also a Hugging Face model folder. Sources are read
 * one after the other, whatever their order; equal contents give equal files.
 * @param place - a storage, or the folder of a run. One process at a time saves into it, and sweeps it before
 * @throws {TroupeError} `CHECKPOINT_SAVE_FAILED` with the first cause: the disk is full or failing, or a source threw
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
    {
      ...texts,
      step: state.step,
      weights: weights.toSorted(byName),
      optimizer: optimizer.toSorted(byName),
    },
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
