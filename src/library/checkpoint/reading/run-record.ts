import { TroupeError } from "../../../errors/index.ts";
import { manifestName, type TrainerState } from "../format/manifest.ts";
import { stepOf } from "../format/step-folder.ts";
import { type JsonObject, parseJsonObject } from "../format/strict-json.ts";
import type { CheckpointStorage, StorageHolder } from "../storage/storage.ts";
import { forgetNames } from "./named-states.ts";

/** The file that says whose a folder of checkpoints is. */
export const ownerName = "run.json";

/** Which run checkpoints are of, and what it was. Plain data: the storage keeps it, and `run` of each manifest. */
export interface RunRecord {
  /** A UUID. A run that goes on in its own folder keeps it. */
  readonly id: string;
  /** The job, as a person would name it. */
  readonly job: string;
  /** When the run began, in ISO 8601. */
  readonly startedAt: string;
  /** The run whose checkpoint this one began with, where that is another. */
  readonly parent?: string;
}

/** How a run ended. */
export interface RunEnd {
  /** `stopped`: told to end before its last step. */
  readonly how: "finished" | "stopped" | "failed";
  /** In ISO 8601. */
  readonly at: string;
}

/** What a storage says of the run that it belongs to. */
export interface OwnerRecord extends RunRecord {
  /** null while nothing was told of its end; left out by older versions, which never tell. */
  readonly end?: RunEnd | null;
}

/** How things stand with the run of a storage. */
export type RunStanding =
  | { readonly state: "running"; readonly holder: StorageHolder }
  | { readonly state: "ended"; readonly end: RunEnd }
  /** It holds its folder no more, and has not said why: killed, or its machine is gone. Last heard of then, in ISO 8601. */
  | { readonly state: "silent"; readonly heardAt: string };

/** @returns the run that a storage belongs to; undefined where nobody has said, as before there were records */
export async function ownerOf(storage: CheckpointStorage): Promise<OwnerRecord | undefined> {
  const text = await storage.readText(ownerName);
  return text === undefined ? undefined : recordOf(parseJsonObject(text, `${storage.location}/${ownerName}`));
}

/**
 * How things stand with the run that a storage belongs to, by what it has said and whether it still holds the storage.
 * @param heardAt - when its newest checkpoint was saved, where that is known
 * @returns undefined where nobody can tell: without a run, or of an older version
 */
export async function standingOf(
  storage: CheckpointStorage,
  heardAt: string | undefined,
): Promise<RunStanding | undefined> {
  // In this order: who ends between the two looks has told its end by the second.
  const holder = await storage.holder();
  const owner = await ownerOf(storage);
  if (owner?.end === undefined) return undefined;
  if (owner.end !== null) return { state: "ended", end: owner.end };
  return holder === undefined
    ? { state: "silent", heardAt: heardAt ?? owner.startedAt }
    : { state: "running", holder };
}

/** @returns what a run says of itself in a manifest that is written now */
export function stampOf(run: RunRecord): JsonObject {
  return { ...run, savedAt: new Date().toISOString() };
}

/** When a checkpoint was saved, in ISO 8601; undefined where it does not say. */
export function savedAt({ run }: TrainerState): string | undefined {
  return typeof run?.savedAt === "string" ? run.savedAt : undefined;
}

/** @returns the run that a checkpoint is of; undefined where it does not say */
export function runOf(state: TrainerState): RunRecord | undefined {
  if (state.run === undefined) return undefined;
  const { savedAt: _, ...record } = state.run;
  return recordOf(record);
}

/** Whether a checkpoint is of another run than the one that its storage belongs to, as far as both are known. */
export function isForeign(state: TrainerState, owner: RunRecord | undefined): boolean {
  const run = runOf(state);
  return run !== undefined && owner !== undefined && run.id !== owner.id;
}

/** Says whose a storage is, and how that run has ended where it has. To be called by who has it locked. */
export async function putOwner(
  storage: CheckpointStorage,
  run: RunRecord,
  end: RunEnd | null = null,
): Promise<void> {
  await storage.writeText(ownerName, `${JSON.stringify({ ...run, end }, null, 2)}\n`);
}

/**
 * Makes a storage that holds nothing a run's own. To be called by who has it locked.
 * @throws {TroupeError} `CHECKPOINT_TAKEN` where it holds checkpoints, or another run has begun in it
 */
export async function takeEmpty(storage: CheckpointStorage, run: RunRecord): Promise<void> {
  const owner = await ownerOf(storage);
  const steps = await stepsIn(storage);
  if (steps.length > 0) throw taken(storage, owner, Math.max(...steps));
  await forgetNames(storage);
  await putOwner(storage, run);
}

/**
 * Refuses to empty a storage in which a step's folder holds no manifest: it is no checkpoint, and its files are not a run's to remove.
 * @throws {TroupeError} `CHECKPOINT_TAKEN` naming it
 */
export async function refuseOthersFiles(storage: CheckpointStorage): Promise<void> {
  for (const name of await storage.list()) {
    if (stepOf(name) === undefined || (await hasManifest(storage, name))) continue;
    const path = `${storage.location}/${name}`;
    throw new TroupeError(
      "CHECKPOINT_TAKEN",
      {
        where: "checkpoint",
        expected: `${path} to be a checkpoint, which --overwrite may remove`,
        got: `one without ${manifestName}`,
        hint: "move it away: its files may be yours",
      },
      { fields: { path } },
    );
  }
}

/** Removes every checkpoint of a storage, and makes it a run's own. To be called by who has it locked. */
export async function takeOver(storage: CheckpointStorage, run: RunRecord): Promise<void> {
  // The name first: from here on no one takes what is left of the other run for this one's.
  await putOwner(storage, run);
  await forgetNames(storage);
  for (const name of await storage.list())
    if (stepOf(name) !== undefined && (await hasManifest(storage, name))) await storage.remove(name);
}

/** Whether a folder has a manifest, damaged or not: one without is no checkpoint. */
export async function hasManifest(storage: CheckpointStorage, name: string): Promise<boolean> {
  const folder = await storage.open(name);
  try {
    await using _manifest = await folder.openFile(manifestName);
    return true;
  } catch (error) {
    if (error instanceof TroupeError) return false;
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
  return new TroupeError(
    "CHECKPOINT_TAKEN",
    {
      where: "checkpoint",
      expected: "a folder without checkpoints for a new run",
      got: `${storage.location} with those of ${whose} up to step ${step}`,
      hint: `go on with it: --resume ${storage.location}; remove it: --overwrite; keep both: give another folder, or --checkpoint auto`,
    },
    { fields: { location: storage.location, step, run: owner?.id } },
  );
}
