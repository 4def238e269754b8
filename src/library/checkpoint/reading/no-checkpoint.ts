import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { nearestPath, TroupeError } from "../../../errors/index.ts";
import { isS3 } from "../../s3-client.ts";
import { ownerName } from "./run-record.ts";

/**
 * The error for a place without the wanted checkpoint. Suggests a place that has one: a folder with a similar name, or
 * one below it.
 * @param location - the folder of a run, or an address in S3
 */
export function noCheckpoint(
  location: string,
  wanted = "a checkpoint",
  found: readonly string[] = [],
): TroupeError {
  return new TroupeError("CHECKPOINT_MISSING", {
    where: "checkpoint",
    expected: `${wanted} in ${location}`,
    got: found.length === 0 ? "none" : found.join(", "),
    hint:
      found.length > 0
        ? undefined
        : (elsewhere(location) ?? "give the folder of a run, or of one of its steps"),
    fields: { path: location },
  });
}

/** The most runs that are suggested. */
const MANY_RUNS = 6;

function elsewhere(location: string): string | undefined {
  if (isS3(location)) return undefined;
  if (isRun(location)) return "the run that this folder belongs to has saved none";
  const near = existsSync(location) ? location : nearestPath(location, (entry) => entry.isDirectory());
  if (near === undefined) return undefined;
  const runs = isRun(near) ? [near] : runsIn(near);
  if (runs.length > 0 && runs.length <= MANY_RUNS) return `did you mean ${runs.join(" or ")}?`;
  return near === location ? undefined : `did you mean ${near}?`;
}

const isRun = (path: string): boolean => existsSync(join(path, ownerName));

function runsIn(path: string): string[] {
  return foldersIn(path)
    .map((folder) => join(path, folder))
    .filter(isRun);
}

function foldersIn(path: string): string[] {
  try {
    return readdirSync(path, { withFileTypes: true }).flatMap((entry) =>
      entry.isDirectory() ? [entry.name] : [],
    );
  } catch {
    return []; // no folder, or not ours to read
  }
}
