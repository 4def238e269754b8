import { accessSync, constants, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeOwnedFolder } from "./owned-folder.ts";

const inMemory = "/dev/shm";

/**
 * Makes the folder in which the processes of one system meet: their sockets, and the memory they share. It lies in memory where
 * the machine has such a place. What systems left behind that were killed with all their processes at once is removed.
 */
export function makeHostFolder(): string {
  return makeOwnedFolder(isWritable(inMemory) ? inMemory : tmpdir(), "troupe-host-");
}

/** Removes what one process has left in the folder; its files bear its number. */
export function sweepHostFolder(path: string, index: number): void {
  const prefixes = [`p${index}.`, `p${index}-`];
  for (const name of readdirSync(path)) {
    if (prefixes.some((prefix) => name.startsWith(prefix))) rmSync(join(path, name), { force: true });
  }
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
