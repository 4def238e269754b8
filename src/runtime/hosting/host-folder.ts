import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { temporaryRoot } from "../../errors/untrusted/index.ts";
import { makeOwnedFolder } from "./owned-folder.ts";

/**
 * Makes the folder in which the processes of one system meet: their sockets, and the memory they share. It lies in memory where
 * the machine has such a place. What systems left behind that were killed with all their processes at once is removed.
 * @throws {TroupeError} `FOLDER_UNSAFE` where no folder of the machine keeps other users from it
 */
export function makeHostFolder(): string {
  return makeOwnedFolder(temporaryRoot({ inMemory: true }), "troupe-host-");
}

/** Removes what one process has left in the folder; its files bear its number. */
export function sweepHostFolder(path: string, index: number): void {
  const prefixes = [`p${index}.`, `p${index}-`];
  for (const name of readdirSync(path)) {
    if (prefixes.some((prefix) => name.startsWith(prefix))) rmSync(join(path, name), { force: true });
  }
}
