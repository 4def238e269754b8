import { type BigIntStats, statSync } from "node:fs";
import { type FileHandle, stat } from "node:fs/promises";

/**
 * Reads the status of the file or folder that a path leads to, times in nanoseconds.
 * @returns undefined where the path leads to none: nothing is there, its links go round in a loop, or a folder may not be entered
 */
export function fileStatus(path: string): BigIntStats | undefined {
  try {
    return statSync(path, { bigint: true });
  } catch {
    return undefined;
  }
}

/** Whether a path leads to a file or folder. */
export function isThere(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

/** Whether a path leads to the file that is open: it may have been removed or replaced since. */
export async function isStillAt(path: string, file: FileHandle): Promise<boolean> {
  const [own, there] = await Promise.all([file.stat(), stat(path).catch(() => undefined)]);
  return own.ino === there?.ino && own.dev === there.dev;
}
