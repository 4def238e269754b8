import {
  type CheckpointFacts,
  type CheckpointStorage,
  listCheckpoints,
  noCheckpoint,
  placeOf,
  stepFolder,
} from "../../../library/checkpoint/index.ts";

/** A run's storage and the selected checkpoints, the newest first. */
export interface SelectedCheckpoints {
  readonly storage: CheckpointStorage;
  readonly checkpoints: readonly CheckpointFacts[];
}

/** Selects a run folder's checkpoints, or the one that `location` or `step` names. @throws {TroupeError} `CHECKPOINT_MISSING` */
export async function selectCheckpoints(location: string, step?: number): Promise<SelectedCheckpoints> {
  const { storage, name } = await placeOf(location);
  const all = await listCheckpoints(storage);
  const wanted = step === undefined ? name : stepFolder(step);
  const checkpoints = wanted === undefined ? all : all.filter((facts) => facts.name === wanted);
  if (checkpoints.length > 0) return { storage, checkpoints };
  const found = all.map((facts) => facts.name);
  throw noCheckpoint(storage.location, wanted, found);
}
