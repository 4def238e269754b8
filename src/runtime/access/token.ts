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

/** Whether two tokens are equal, in a time that tells nothing of where they differ or how long they are. */
export function sameToken(given: string, expected: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(given), digest(expected));
}

/**
 * The token kept in a file that its owner alone can read, made where there is none: who has it from one run comes in to
 * the next one of the same folder too.
 * @throws {TroupeError} `ACCESS_TOKEN` where the file is a link, another user's, readable by others, or holds no token
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
    // Nor is a writer waited for, where it is a pipe.
    await using file = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    return await readToken(file, path);
  } catch (error) {
    throw error instanceof TroupeError ? error : unusable(path, error);
  }
}

async function readToken(file: FileHandle, path: string): Promise<string> {
  const found = await file.stat();
  if (!found.isFile()) throw unusable(path, "one that is no regular file");
  const reason = whyForeign(found, { secret: true });
  if (reason !== undefined) throw unusable(path, reason);
  const text = found.size > 100 ? "" : (await file.readFile("utf8")).trim();
  if (!tokenPattern.test(text)) throw unusable(path, "one that holds no token");
  return text;
}

function unusable(path: string, cause: unknown): TroupeError {
  const got = cause instanceof Error ? cause.message : String(cause);
  return new TroupeError(
    "ACCESS_TOKEN",
    {
      where: "access",
      expected: `a file of our own for the token at ${path}`,
      got,
      hint: "remove it, and a new one is made",
    },
    cause instanceof Error ? { cause } : {},
  );
}
