import { basename, dirname, join, resolve } from "node:path";
import { TroupeError } from "../../../errors/index.ts";
import { isThere } from "../../../errors/untrusted/index.ts";
import { isS3 } from "../../s3-client.ts";
import { manifestName, type TrainerState } from "../format/manifest.ts";
import { stepOf } from "../format/step-folder.ts";
import { openStorage } from "../open-storage.ts";
import { LocalFolder } from "../storage/local-folder.ts";
import type { CheckpointStorage } from "../storage/storage.ts";
import { Checkpoint } from "./checkpoint.ts";
import { isOfCheckpoint } from "./folder-contents.ts";
import { folderNamed, isStateName } from "./named-states.ts";
import { noCheckpoint } from "./no-checkpoint.ts";
import { isForeign, ownerOf, type RunRecord, runOf } from "./run-record.ts";

/** Options of {@link openCheckpoint}. */
export interface OpenCheckpointOptions {
  /** Paths of checkpoints to skip, such as one whose tensors were found damaged while they were read. */
  readonly except?: readonly string[];
}

/**
 * Opens the newest complete checkpoint of a run: the one that `latest` names or, if that is damaged, the undamaged one
 * with the highest step.
 * @param place - a storage or a run's folder; or the folder of one checkpoint, or in the run's folder a name that a
 * save was given: then that one is opened
 * @throws {TroupeError} `CHECKPOINT_MISSING` if there is none, `CHECKPOINT_DAMAGED` if all are damaged; `S3_FAILED` if
 * one cannot be reached
 */
export async function openCheckpoint(
  place: CheckpointStorage | string,
  options: OpenCheckpointOptions = {},
): Promise<Checkpoint> {
  const { storage, name } = await placeOf(place);
  const names = name === undefined ? await newestFirst(storage) : [name];
  const owner = name === undefined ? await ownerOf(storage) : undefined;
  const passedOver: TroupeError[] = [];
  for (const candidate of names) {
    const folder = await storage.open(candidate);
    if (options.except?.includes(folder.path)) continue;
    try {
      const checkpoint = await Checkpoint.open(folder, passedOver);
      if (!isForeign(checkpoint.state, owner)) return checkpoint;
      await checkpoint[Symbol.asyncDispose]();
      passedOver.push(ofAnotherRun(folder.path, checkpoint.state, owner));
    } catch (error) {
      if (!isOfCheckpoint(error)) throw error;
      passedOver.push(error);
    }
  }
  const [first] = passedOver;
  if (first !== undefined && passedOver.length === 1) throw first;
  if (first !== undefined) throw noneWhole(storage, passedOver);
  throw noCheckpoint(storage.location);
}

/** Finds the storage for a path, and the name of its folder where the path is that of one checkpoint. */
export async function placeOf(
  place: CheckpointStorage | string,
): Promise<{ storage: CheckpointStorage; name?: string }> {
  if (typeof place !== "string") return { storage: place };
  if (isS3(place)) return placeInS3(place);
  const path = resolve(place);
  const above = new LocalFolder(dirname(path));
  const last = basename(path);
  if (await isThere(join(path, manifestName))) return { storage: above, name: last };
  if (await isThere(path)) return { storage: new LocalFolder(place) };
  // A step that is not at its path may be listed all the same: it was set aside for a new one.
  const isListed = stepOf(last) !== undefined && (await above.list()).includes(last);
  const name = isListed ? last : await folderNamed(above, last);
  return name === undefined ? { storage: new LocalFolder(place) } : { storage: above, name };
}

/**
 * Splits an address in S3, where the form of its last part decides whether it is a checkpoint: keys are not folders
 * that could be looked at.
 */
async function placeInS3(place: string): Promise<{ storage: CheckpointStorage; name?: string }> {
  const [, above = "", last = ""] = /^(.*)\/([^/]*)\/*$/.exec(place) ?? [];
  const storage = await openStorage(above);
  if (stepOf(last) !== undefined) return { storage, name: last };
  const named = isStateName(last) ? await folderNamed(storage, last) : undefined;
  return named === undefined ? { storage: await openStorage(place) } : { storage, name: named };
}

/** The names of a storage's checkpoints: first the one that `latest` names, then by step, the highest first. */
export async function newestFirst(storage: CheckpointStorage): Promise<string[]> {
  const latest = await storage.latest();
  const steps = (await storage.list()).flatMap((name) => {
    const step = stepOf(name);
    return step === undefined ? [] : [{ name, step }];
  });
  steps.sort((a, b) => Number(b.name === latest) - Number(a.name === latest) || b.step - a.step);
  return steps.map(({ name }) => name);
}

function ofAnotherRun(path: string, state: TrainerState, owner: RunRecord | undefined): TroupeError {
  return new TroupeError("CHECKPOINT_TAKEN", {
    where: "checkpoint",
    expected: `a checkpoint of the run ${owner?.id}, whose folder this is`,
    got: `${path}/${manifestName} of the run ${runOf(state)?.id}`,
    hint: "give that one's own path to use it",
    fields: { path: `${path}/${manifestName}`, run: runOf(state)?.id },
  });
}

function noneWhole(storage: CheckpointStorage, passedOver: readonly TroupeError[]): TroupeError {
  return new TroupeError("CHECKPOINT_DAMAGED", {
    where: "checkpoint",
    expected: `an intact checkpoint in ${storage.location}`,
    got: `${passedOver.length} damaged, the first because ${passedOver[0]?.message}`,
    hint: "restore one of them from a copy",
    fields: { path: storage.location, causes: passedOver.map((error) => error.message) },
    cause: passedOver[0],
  });
}
