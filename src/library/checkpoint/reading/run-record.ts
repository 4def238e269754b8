import { TroupeError } from "../../../errors/index.ts";
import { manifestName, type TrainerState } from "../format/manifest.ts";
import { stepOf } from "../format/step-folder.ts";
import { type JsonObject, parseJsonObject } from "../format/strict-json.ts";
import { notOurs } from "../storage/local-folder.ts";
import type { CheckpointStorage, StorageHolder } from "../storage/storage.ts";
import { isOfCheckpoint } from "./folder-contents.ts";
import { forgetNames } from "./named-states.ts";

/** The file that names the run that owns a folder of checkpoints. */
export const ownerName = "run.json";

/** Identifies the run of checkpoints. Plain data: stored in the folder, and as `run` in each manifest. */
export interface RunRecord {
  /** A UUID. A run that resumes in its own folder keeps it. */
  readonly id: string;
  /** The job's name for people. */
  readonly job: string;
  /** When the run began, in ISO 8601. */
  readonly startedAt: string;
  /** The run whose checkpoint this run began with, if it is another. */
  readonly parent?: string;
}

/** How a run ended. */
export interface RunEnd {
  /** `stopped`: asked to end before its last step. */
  readonly how: "finished" | "stopped" | "failed";
  /** In ISO 8601. */
  readonly at: string;
}

/** A storage's record of the run that owns it. */
export interface OwnerRecord extends RunRecord {
  /** null until the run has ended; left out by older versions, which never record it. */
  readonly end?: RunEnd | null;
}

/** The state of a storage's run. */
export type RunStanding =
  | { readonly state: "running"; readonly holder: StorageHolder }
  | { readonly state: "ended"; readonly end: RunEnd }
  /**
   * It no longer holds the folder and has not recorded its end: it was killed, or its machine is gone. Time of its last
   * sign in ISO 8601.
   */
  | { readonly state: "silent"; readonly heardAt: string };

/** Returns the run that owns a storage; undefined where there is no record, as in older versions. */
export async function ownerOf(storage: CheckpointStorage): Promise<OwnerRecord | undefined> {
  const text = await storage.readText(ownerName);
  return text === undefined ? undefined : recordOf(parseJsonObject(text, `${storage.location}/${ownerName}`));
}

/**
 * Determines the state of a storage's run from its record and its lock.
 * @param heardAt - when its newest checkpoint was saved, where that is known
 * @returns undefined where that is unknown: without a run, or for an older version
 */
export async function standingOf(
  storage: CheckpointStorage,
  heardAt: string | undefined,
): Promise<RunStanding | undefined> {
  // In this order: a run that ends between the two reads has recorded its end by the second.
  const holder = await storage.holder();
  const owner = await ownerOf(storage);
  if (owner?.end === undefined) return undefined;
  if (owner.end !== null) return { state: "ended", end: owner.end };
  return holder === undefined
    ? { state: "silent", heardAt: heardAt ?? owner.startedAt }
    : { state: "running", holder };
}

/** Returns a run's record for a manifest that is written now. */
export function stampOf(run: RunRecord): JsonObject {
  return { ...run, savedAt: new Date().toISOString() };
}

/** When a checkpoint was saved, in ISO 8601; undefined where it has no record. */
export function savedAt({ run }: TrainerState): string | undefined {
  return typeof run?.savedAt === "string" ? run.savedAt : undefined;
}

/** Returns the run of a checkpoint; undefined where it has no record. */
export function runOf(state: TrainerState): RunRecord | undefined {
  if (state.run === undefined) return undefined;
  const { savedAt: _, ...record } = state.run;
  return recordOf(record);
}

/** Whether a checkpoint is of another run than its storage, as far as both are known. */
export function isForeign(state: TrainerState, owner: RunRecord | undefined): boolean {
  const run = runOf(state);
  return run !== undefined && owner !== undefined && run.id !== owner.id;
}

/** Records the owner of a storage, and how its run has ended if it has. The caller must hold the lock. */
export async function putOwner(
  storage: CheckpointStorage,
  run: RunRecord,
  end: RunEnd | null = null,
): Promise<void> {
  await storage.writeText(ownerName, `${JSON.stringify({ ...run, end }, null, 2)}\n`);
}

/**
 * Makes an empty storage a run's own. The caller must hold the lock.
 * @throws {TroupeError} `CHECKPOINT_TAKEN` where it has checkpoints, or another run has begun in it
 */
export async function takeEmpty(storage: CheckpointStorage, run: RunRecord): Promise<void> {
  const owner = await ownerOf(storage);
  const steps = await stepsIn(storage);
  if (steps.length > 0) throw taken(storage, owner, Math.max(...steps));
  await forgetNames(storage);
  await putOwner(storage, run);
}

/**
 * Refuses to empty a storage in which a step's folder has no manifest: it is no checkpoint, so a run must not remove its files.
 * @throws {TroupeError} `CHECKPOINT_TAKEN` naming it
 */
export async function refuseOthersFiles(storage: CheckpointStorage): Promise<void> {
  for (const name of await storage.list()) {
    if (stepOf(name) === undefined || (await hasManifest(storage, name))) continue;
    throw notOurs(`${storage.location}/${name}`, manifestName, "--overwrite may remove");
  }
}

/** Removes every checkpoint of a storage, and makes it a run's own. The caller must hold the lock. */
export async function takeOver(storage: CheckpointStorage, run: RunRecord): Promise<void> {
  // The owner first: from here on the other run's remaining checkpoints are not taken for this one's.
  await putOwner(storage, run);
  await forgetNames(storage);
  for (const name of await storage.list())
    if (stepOf(name) !== undefined && (await hasManifest(storage, name))) await storage.remove(name);
}

/** Whether a folder has a manifest, damaged or not; without one it is no checkpoint. */
export async function hasManifest(storage: CheckpointStorage, name: string): Promise<boolean> {
  const folder = await storage.open(name);
  try {
    await using _manifest = await folder.openFile(manifestName);
    return true;
  } catch (error) {
    if (isOfCheckpoint(error)) return false;
    throw error;
  }
}

async function stepsIn(storage: CheckpointStorage): Promise<number[]> {
  return (await storage.list()).flatMap((name) => stepOf(name) ?? []);
}

function recordOf(plain: JsonObject): OwnerRecord | undefined {
  const { id, job, startedAt } = plain;
  const isRecord = [id, job, startedAt].every((value) => typeof value === "string");
  return isRecord ? (plain as unknown as OwnerRecord) : undefined;
}

function taken(storage: CheckpointStorage, owner: RunRecord | undefined, step: number): TroupeError {
  const whose = owner === undefined ? "a run" : `a run of ${owner.job}, begun ${owner.startedAt},`;
  return new TroupeError("CHECKPOINT_TAKEN", {
    where: "checkpoint",
    expected: "a folder without checkpoints for a new run",
    got: `${storage.location} with those of ${whose} up to step ${step}`,
    hint: `go on with it: --resume ${storage.location}; remove it: --overwrite; keep both: give another folder, or --checkpoint auto`,
    fields: { location: storage.location, step, run: owner?.id },
  });
}
