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
  throw new TroupeError(
    "FOLDER_UNSAFE",
    {
      where: "temporary files",
      expected: `${path} to be a folder in which no other user can touch our files`,
      got: reason,
      hint: "set TMPDIR to a folder of your own",
    },
    { fields: { path } },
  );
}
