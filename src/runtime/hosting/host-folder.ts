import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { temporaryRoot } from "../../errors/untrusted/index.ts";
import { makeOwnedFolder } from "./owned-folder.ts";

/**
 * Makes the folder for the sockets and shared memory of one system's processes. It is in memory if the machine has such a
 * folder. Folders left behind by systems that were killed with all their processes are removed.
 * @throws {TroupeError} `FOLDER_UNSAFE` if no folder of the machine is safe from other users
 */
export function makeHostFolder(): string {
  return makeOwnedFolder(temporaryRoot({ inMemory: true }), "troupe-host-");
}

/** Removes the files of one process from the folder; their names have its number. */
export function sweepHostFolder(path: string, index: number): void {
  const prefixes = [`p${index}.`, `p${index}-`];
  for (const name of readdirSync(path)) {
    if (prefixes.some((prefix) => name.startsWith(prefix))) rmSync(join(path, name), { force: true });
  }
}
