import { existsSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";

/**
 * Makes a folder and those that it lies in. Not by `recursive: true`, which in Node never returns where the system says of a
 * folder that stands that nothing can be made in it, as in /proc.
 * @returns the first that was made; undefined where it stood
 * @throws what the file system says of the first that cannot be made
 */
export function makeFolder(path: string): string | undefined {
  if (existsSync(path)) return undefined;
  const parent = dirname(path);
  const first = parent === path ? undefined : makeFolder(parent);
  try {
    mkdirSync(path);
  } catch (error) {
    // Another process may have made it meanwhile.
    if (!existsSync(path)) throw error;
  }
  return first ?? path;
}
