import { existsSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";

/**
 * Creates a folder and its parents. `recursive: true` is not used: in Node it never returns inside an existing folder that
 * refuses new entries, such as /proc.
 * @returns the first folder that was created; undefined if it existed
 * @throws the file system's error for the first folder that cannot be created
 */
export function makeFolder(path: string): string | undefined {
  if (existsSync(path)) return undefined;
  const parent = dirname(path);
  const first = parent === path ? undefined : makeFolder(parent);
  try {
    mkdirSync(path);
  } catch (error) {
    // Another process may have created it meanwhile.
    if (!existsSync(path)) throw error;
  }
  return first ?? path;
}
