import { TroupeError } from "../../../errors/index.ts";
import { stepFolder, stepOf } from "../format/step-folder.ts";
import { type JsonObject, parseJsonObject } from "../format/strict-json.ts";
import type { CheckpointStorage } from "../storage/storage.ts";

/** The file next to the checkpoints that has their names. */
const namedFile = "named.json";
/** Enough for a hundred thousand names. */
const maxNamedBytes = 16 << 20;

/** The name of a saved state. */
export interface StateName {
  /** Such as `best`: letters, digits, `.`, `_` and `-`. */
  readonly as: string;
  /** The metric of the state, if one is kept with the name. */
  readonly metric?: number | undefined;
}

/** A checkpoint with a name. */
export interface NamedCheckpoint {
  readonly step: number;
  readonly metric?: number;
}

/** Whether a text may name a checkpoint: as the last part of a path it must be neither a step's folder nor `latest`. */
export function isStateName(text: unknown): text is string {
  return (
    typeof text === "string" &&
    /^[A-Za-z][A-Za-z0-9._-]{0,63}$/.test(text) &&
    text !== "latest" &&
    stepOf(text) === undefined
  );
}

/** Checks a name that is about to be given. @throws {TroupeError} `OPTION` */
export function checkStateName(where: string, name: string): void {
  if (isStateName(name)) return;
  throw new TroupeError("OPTION", {
    where,
    expected: "a name such as best: letters, digits, dots, _ and -, and not latest",
    got: String(name),
  });
}

/**
 * The named checkpoints of a storage, by name.
 * @throws {TroupeError} `JSON_INVALID`, `FILE_READ`; errors of reading: names that were taken for none would be pruned and overwritten
 */
export async function namedIn(
  storage: CheckpointStorage,
): Promise<Readonly<Record<string, NamedCheckpoint>>> {
  const text = await storage.readText(namedFile, maxNamedBytes);
  if (text === undefined) return {};
  const named = Object.entries(parseJsonObject(text, `${storage.location}/${namedFile}`));
  return Object.fromEntries(named.flatMap(([name, value]) => (isNamed(value) ? [[name, value]] : [])));
}

/** Returns the folder of the checkpoint with a name; undefined where there is none. */
export async function folderNamed(storage: CheckpointStorage, name: string): Promise<string | undefined> {
  // The storage is a guess from a path: its file may be another's, or not ours to read.
  const named = (await namedIn(storage).catch(() => undefined))?.[name];
  return named === undefined ? undefined : stepFolder(named.step);
}

/** Gives a checkpoint a name; an earlier checkpoint of that name loses it. The caller must hold the storage's lock. */
export async function nameState(
  storage: CheckpointStorage,
  { as, metric }: StateName,
  step: number,
): Promise<void> {
  const named = { ...(await namedIn(storage)), [as]: { step, ...(metric !== undefined && { metric }) } };
  await storage.writeText(namedFile, `${JSON.stringify(named, null, 2)}\n`);
}

/** Removes all names of a storage's checkpoints. The caller must hold its lock. */
export async function forgetNames(storage: CheckpointStorage): Promise<void> {
  if ((await storage.readText(namedFile, maxNamedBytes)) === undefined) return;
  await storage.writeText(namedFile, "{}\n");
}

function isNamed(value: unknown): value is NamedCheckpoint {
  const { step, metric } = (value ?? {}) as JsonObject;
  return Number.isSafeInteger(step) && (metric === undefined || typeof metric === "number");
}
