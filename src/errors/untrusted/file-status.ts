import { type BigIntStats, statSync } from "node:fs";

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
