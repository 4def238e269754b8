import { lstatSync, mkdtempSync, readdirSync, readlinkSync, rmSync } from "node:fs";
import { join } from "node:path";
import { startOf } from "../process-mark.ts";

/**
 * Makes a folder below `root` that this process answers for: only this user may enter it, and its name tells whose it is. What
 * processes left there that ended without removing theirs is removed first.
 * @param prefix - what the folder is for, such as `troupe-`; folders of other prefixes are left alone
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

/** Numbers of processes mean something within one namespace only, and containers may share memory without sharing it. */
function pidNamespace(): string {
  try {
    return readlinkSync("/proc/self/ns/pid").replace(/\D/g, "");
  } catch {
    return "0";
  }
}
