import { lstatSync, mkdtempSync, readdirSync, readlinkSync, rmSync } from "node:fs";
import { join } from "node:path";
import { startOf } from "../process-mark.ts";

/**
 * Makes a folder in `root` for this process and user alone; removes those of processes that ended without removing theirs.
 * @param prefix - start of the folder's name, such as `troupe-`; folders with other prefixes are left alone
 */
export function makeOwnedFolder(root: string, prefix: string): string {
  const stamped = `${prefix}${pidNamespace()}-`;
  for (const name of readdirSync(root)) {
    if (!name.startsWith(stamped)) continue;
    const [pid, startedAt] = name.slice(stamped.length).split("-");
    if (startOf(Number(pid)) !== startedAt && isMine(join(root, name))) removeOwnedFolder(join(root, name));
  }
  return mkdtempSync(join(root, `${stamped}${process.pid}-${startOf(process.pid)}-`));
}

/** Removes the folder and everything in it. */
export function removeOwnedFolder(path: string): void {
  rmSync(path, { recursive: true, force: true });
}

function isMine(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.uid === process.getuid?.();
}

/**
 * Returns the id of this process's pid namespace: process ids differ between namespaces, and containers may share a folder in
 * memory without sharing the namespace.
 */
function pidNamespace(): string {
  try {
    return readlinkSync("/proc/self/ns/pid").replace(/\D/g, "");
  } catch {
    return "0";
  }
}
