import { randomUUID } from "node:crypto";
import { readdir, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { makeDirectoryDurably, savingPrefix, syncPath } from "./durable-file.ts";

/** What the name of a directory begins with while a new one takes its place. */
export const replacedPrefix = ".replaced-";

const uuidLength = 36;

/**
 * Makes the directory `name` in `parent`, whole and on the disk, or not at all: its files are written into a temporary
 * directory, synchronised, and renamed into place. A directory that had the name is replaced; until then, and when
 * anything fails, it stays.
 *
 * One process at a time saves into a parent.
 * @param write - writes files, no directories, into the directory it is given
 * @throws what `write` or the file system throws; the temporary directory is gone then
 */
export async function commitDirectory(
  parent: string,
  name: string,
  write: (directory: string) => Promise<void>,
): Promise<void> {
  const temporary = join(parent, `${savingPrefix}${name}-${randomUUID()}`);
  try {
    await makeDirectoryDurably(temporary);
    await write(temporary);
    for (const file of await readdir(temporary)) await syncPath(join(temporary, file));
    await syncPath(temporary);
    await putInPlace(temporary, parent, name);
  } catch (error) {
    await rm(temporary, { recursive: true, force: true });
    throw error;
  }
}

/**
 * Removes what saves that never ended left in `parent`, and puts a directory back whose replacement never came. To be
 * called before the first save of a process. A parent that does not exist has none.
 */
export async function sweepLeftovers(parent: string): Promise<void> {
  if (!(await exists(parent))) return;
  for (const entry of await readdir(parent)) {
    const path = join(parent, entry);
    if (entry.startsWith(savingPrefix)) await rm(path, { recursive: true, force: true });
    const name = replacedName(entry);
    if (name === undefined) continue;
    if (await exists(join(parent, name))) await rm(path, { recursive: true, force: true });
    else await rename(path, join(parent, name));
  }
}

/** The name that a directory had before it was put aside for a new one; undefined for any other. */
export function replacedName(entry: string): string | undefined {
  return entry.startsWith(replacedPrefix) ? entry.slice(replacedPrefix.length, -uuidLength - 1) : undefined;
}

async function putInPlace(temporary: string, parent: string, name: string): Promise<void> {
  const place = join(parent, name);
  const aside = join(parent, `${replacedPrefix}${name}-${randomUUID()}`);
  const replaces = await exists(place);
  // A directory cannot be renamed over one that holds files, so the old one steps aside first. Readers know it there.
  if (replaces) await rename(place, aside);
  try {
    await rename(temporary, place);
    await syncPath(parent);
  } catch (error) {
    await rename(place, temporary).catch(() => {});
    if (replaces) await rename(aside, place).catch(() => {});
    throw error;
  }
  if (replaces) await rm(aside, { recursive: true, force: true });
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return false;
      throw error;
    },
  );
}
