import { existsSync, readdirSync } from "node:fs";
import { join, sep } from "node:path";
import { nearestName, TroupeError } from "../../errors.ts";
import { isS3 } from "../storage/s3/s3-client.ts";
import { ownerName } from "./run-record.ts";

/**
 * The error of a place without a checkpoint that was meant, which says where one is: in a folder of nearly that name, or in
 * those below it.
 * @param location - the folder of a run, or an address in S3
 */
export function noCheckpoint(
  location: string,
  wanted = "a checkpoint",
  found: readonly string[] = [],
): TroupeError {
  return new TroupeError(
    "CHECKPOINT_MISSING",
    {
      where: "checkpoint",
      expected: `${wanted} in ${location}`,
      got: found.length === 0 ? "none" : found.join(", "),
      hint:
        found.length > 0
          ? undefined
          : (elsewhere(location) ?? "give the folder of a run, or of one of its steps"),
    },
    { fields: { path: location } },
  );
}

/** Runs of which so many are told at most. */
const MANY_RUNS = 6;

function elsewhere(location: string): string | undefined {
  if (isS3(location)) return undefined;
  if (isRun(location)) return "the run that this folder belongs to has saved none";
  const near = existsSync(location) ? location : nearestFolder(location);
  if (near === undefined) return undefined;
  const runs = isRun(near) ? [near] : runsIn(near);
  if (runs.length > 0 && runs.length <= MANY_RUNS) return `did you mean ${runs.join(" or ")}?`;
  return near === location ? undefined : `did you mean ${near}?`;
}

/** The path with the first of its folders that is not there replaced by the nearest that is, where that makes it one. */
function nearestFolder(path: string): string | undefined {
  const parts = path.split(sep);
  const missing = parts.findIndex((_, index) => !existsSync(parts.slice(0, index + 1).join(sep) || sep));
  const above = parts.slice(0, missing).join(sep);
  const folders = foldersIn(above === "" ? (path.startsWith(sep) ? sep : ".") : above);
  const near = nearestName(parts[missing] ?? "", folders);
  if (near === undefined) return undefined;
  const meant = [...parts.slice(0, missing), near, ...parts.slice(missing + 1)].join(sep);
  return existsSync(meant) ? meant : undefined;
}

function isRun(path: string): boolean {
  return existsSync(join(path, ownerName));
}

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
