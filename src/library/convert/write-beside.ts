import { randomUUID } from "node:crypto";
import { readdir, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { TroupeError } from "../../errors/index.ts";
import { makeFolder } from "../../errors/untrusted/index.ts";

type Where = "convert" | "export";

/**
 * Writes to a temporary path beside `target`, and moves the complete result there.
 * @param where - the command, for errors
 * @throws {TroupeError} `CONVERT` or `EXPORT` if there is something at `target`; errors of `write`. Then nothing is left behind
 */
export async function writeBeside<T>(
  where: Where,
  target: string,
  write: (temporary: string) => Promise<T>,
): Promise<T> {
  const place = resolve(target);
  if (await isTaken(place)) throw taken(where, target);
  makeFolder(dirname(place));
  const temporary = join(dirname(place), `.${where}ing-${basename(place)}-${randomUUID()}`);
  try {
    const written = await write(temporary);
    await rename(temporary, place);
    return written;
  } catch (error) {
    await rm(temporary, { recursive: true, force: true });
    throw error;
  }
}

async function isTaken(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  return found !== undefined && !(found.isDirectory() && (await readdir(path)).length === 0);
}

/** The error for a place that is not free. */
export function taken(where: Where, path: string): TroupeError {
  return new TroupeError(where === "convert" ? "CONVERT" : "EXPORT", {
    where,
    expected: `nothing at ${path}`,
    got: "something",
    hint: "choose another place; nothing is overwritten",
    fields: { path },
  });
}
