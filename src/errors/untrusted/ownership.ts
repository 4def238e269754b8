import { existsSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";
import {
  compileCache,
  makeOwnFolder,
  temporaryFolder,
  userCache,
  whyForeign,
  whyUnsafe,
} from "../../../scripts/setup/ownership.mjs";
import { TroupeError } from "../index.ts";

export { compileCache, makeOwnFolder, userCache, whyForeign, whyUnsafe };

/**
 * Returns the folder for temporary files, in which no other user can touch them.
 * @param options.inMemory - prefers a folder in the machine's shared memory, if there is one
 * @throws {TroupeError} `FOLDER_UNSAFE` if another user could touch them
 */
export function temporaryRoot(options: { readonly inMemory?: boolean } = {}): string {
  const { path, reason } = temporaryFolder(options);
  if (reason === undefined) return path;
  throw new TroupeError("FOLDER_UNSAFE", {
    where: "temporary files",
    expected: `${path} to be a folder in which no other user can touch our files`,
    got: reason,
    hint: "set TMPDIR to a folder of your own",
    fields: { path },
  });
}

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
