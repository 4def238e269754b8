import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { constants, type FileHandle, open } from "node:fs/promises";
import { dirname } from "node:path";
import { TroupeError } from "../../errors/index.ts";
import { makeFolder, whyForeign } from "../../errors/untrusted/index.ts";

const { O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants;
const tokenPattern = /^[0-9a-f]{64}$/;

/** @returns 256 random bits as hexadecimal digits */
export function makeToken(): string {
  return randomBytes(32).toString("hex");
}

/** Compares two tokens in a time that does not reveal where they differ or how long they are. */
export function sameToken(given: string, expected: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(given), digest(expected));
}

/**
 * Returns the token in a file that only its owner can read; creates it if missing. A caller with the token of one run has access to
 * the next run of the same folder.
 * @throws {TroupeError} `ACCESS_TOKEN` if the file is a link, another user's, readable by others, or has no token
 */
export async function keepToken(path: string): Promise<string> {
  const token = makeToken();
  try {
    makeFolder(dirname(path));
    await using file = await open(path, "wx", 0o600);
    await file.writeFile(`${token}\n`);
    return token;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw unusable(path, error);
  }
  try {
    // O_NONBLOCK: opening a pipe must not wait for a writer.
    await using file = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    return await readToken(file, path);
  } catch (error) {
    throw error instanceof TroupeError ? error : unusable(path, error);
  }
}

async function readToken(file: FileHandle, path: string): Promise<string> {
  const found = await file.stat();
  if (!found.isFile()) throw unusable(path, "one that is not a regular file");
  const reason = whyForeign(found, { secret: true });
  if (reason !== undefined) throw unusable(path, reason);
  const text = found.size > 100 ? "" : (await file.readFile("utf8")).trim();
  if (!tokenPattern.test(text)) throw unusable(path, "one without a token");
  return text;
}

function unusable(path: string, cause: unknown): TroupeError {
  const got = cause instanceof Error ? cause.message : String(cause);
  return new TroupeError("ACCESS_TOKEN", {
    where: "access",
    expected: `the token file ${path} to be this user's own`,
    got,
    hint: "remove it: a new one is then made",
    ...(cause instanceof Error && { cause }),
  });
}
