import { accessSync, constants, mkdtempSync, readdirSync, readlinkSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const inMemory = "/dev/shm";

/**
 * Makes the folder in which the processes of one system meet: their sockets, and the memory they share. Only this user may
 * enter it. It lies in memory where the machine has such a place. What systems left behind that were killed with all their
 * processes at once is removed.
 */
export function makeHostFolder(): string {
  const root = isWritable(inMemory) ? inMemory : tmpdir();
  const mine = `troupe-${pidNamespace()}-`;
  for (const name of readdirSync(root)) {
    if (name.startsWith(mine) && !isAlive(Number(name.slice(mine.length).split("-")[0])))
      removeHostFolder(join(root, name));
  }
  return mkdtempSync(join(root, `${mine}${process.pid}-`));
}

/** Removes the folder and everything in it. */
export function removeHostFolder(path: string): void {
  rmSync(path, { recursive: true, force: true });
}

/** Removes what one process has left in the folder; its files bear its number. */
export function sweepHostFolder(path: string, index: number): void {
  const prefixes = [`p${index}.`, `p${index}-`];
  for (const name of readdirSync(path)) {
    if (prefixes.some((prefix) => name.startsWith(prefix))) rmSync(join(path, name), { force: true });
  }
}

/** Numbers of processes mean something within one namespace only, and containers may share memory without sharing it. */
function pidNamespace(): string {
  try {
    return readlinkSync("/proc/self/ns/pid").replace(/\D/g, "");
  } catch {
    return "0";
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
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
