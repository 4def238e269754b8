import {
  type CheckpointFacts,
  type CheckpointStorage,
  listCheckpoints,
  placeOf,
  stepFolder,
} from "../../checkpoint/index.ts";
import { TroupeError } from "../../errors.ts";

/** A run's storage and the checkpoints that are meant, the newest first. */
export interface MeantCheckpoints {
  readonly storage: CheckpointStorage;
  readonly checkpoints: readonly CheckpointFacts[];
}

/**
 * The checkpoints that a place, and maybe a step, name.
 * @throws {TroupeError} `CHECKPOINT_MISSING` where there is none
 */
export async function meantBy(location: string, step?: number): Promise<MeantCheckpoints> {
  const { storage, name } = await placeOf(location);
  const all = await listCheckpoints(storage);
  const wanted = step === undefined ? name : stepFolder(step);
  const checkpoints = wanted === undefined ? all : all.filter((facts) => facts.name === wanted);
  if (checkpoints.length > 0) return { storage, checkpoints };
  throw new TroupeError(
    "CHECKPOINT_MISSING",
    {
      where: "troupe checkpoint",
      expected: `${wanted ?? "a checkpoint"} in ${storage.location}`,
      got: all.length === 0 ? "none" : all.map((facts) => facts.name).join(", "),
      hint: "give the folder of a run, or s3://BUCKET/PREFIX",
    },
    { fields: { path: location } },
  );
}
