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
 * Where temporary files of ours are made: nobody else can touch them there.
 * @param options.inMemory - in the machine's shared memory, where there is such a folder
 * @throws {TroupeError} `FOLDER_UNSAFE` where another user could
 */
export function temporaryRoot(options: { readonly inMemory?: boolean } = {}): string {
  const { path, reason } = temporaryFolder(options);
  if (reason === undefined) return path;
  throw new TroupeError(
    "FOLDER_UNSAFE",
    {
      where: "temporary files",
      expected: `${path} to be a folder in which nobody else can touch our files`,
      got: reason,
      hint: "set TMPDIR to a folder of your own",
    },
    { fields: { path } },
  );
}
