import { existsSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";

/**
 * Makes a folder and those that it lies in. Not by `recursive: true`, which in Node never returns where the system says of a
 * folder that stands that nothing can be made in it, as in /proc.
 * @throws what the file system says of the first that cannot be made
 */
export function makeFolder(path: string): void {
  if (existsSync(path)) return;
  const parent = dirname(path);
  if (parent !== path) makeFolder(parent);
  mkdirSync(path);
}
