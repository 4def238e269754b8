import { TroupeError } from "../../errors/index.ts";
import { makeOwnFolder, userCache } from "../../errors/untrusted/index.ts";

/**
 * Makes the folder in which prepared data is kept.
 * @param given - default: `$TROUPE_CACHE`, else `troupe` in the user's cache folder (`$XDG_CACHE_HOME` or `~/.cache`)
 * @param content - kept there, in words
 * @throws {TroupeError} `DATA_CACHE_FAILED` for a folder that another user could have made or can write to
 */
export function cacheFolder(given: string | undefined, content: string): string {
  const path = given ?? process.env.TROUPE_CACHE ?? userCache();
  const reason = makeOwnFolder(path);
  if (reason === undefined) return path;
  throw new TroupeError("DATA_CACHE_FAILED", {
    where: "data",
    expected: `a folder for ${content} at ${path} that no other user could have made or can write to`,
    got: reason,
    hint: "set TROUPE_CACHE to another folder",
    fields: { path },
  });
}
