import { randomUUID } from "node:crypto";
import { open, rename, rm } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { makeFolder } from "../../../errors/untrusted/index.ts";
import { hasEnded, ownMark } from "../../../runtime/process-mark.ts";
import type { FileSink } from "./storage.ts";
import { SummedWriter } from "./summed-file.ts";

/** Prefix of the names of files that are not yet in place. */
const savingPrefix = ".saving-";

/** Makes a new temporary name for a file or folder that will be called `name`. */
export function draftNameOf(name: string): string {
  return `${savingPrefix}${name}-${ownMark}-${randomUUID()}`;
}

/** Whether a name is that of an abandoned draft: its process has ended, or is this one, which starts over. */
export function isLeftDraft(entry: string): boolean {
  if (!entry.startsWith(savingPrefix)) return false;
  const [, mark] = /-(\d+\.\d+)-[0-9a-f-]{36}$/.exec(entry) ?? [];
  return mark === undefined || mark === ownMark || hasEnded(mark);
}

/** Replaces or creates a file atomically: a reader sees the old or the new one, also after a power cut. */
export async function replaceDurably(path: string, write: (file: FileSink) => Promise<void>): Promise<void> {
  const temporary = join(dirname(path), draftNameOf(basename(path)));
  try {
    const file = await SummedWriter.create(temporary);
    try {
      await write(file);
      await file.finish();
    } finally {
      file.drop();
    }
    await rename(temporary, path);
    await syncPath(dirname(path));
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

/** Waits until the bytes of a file, or the names in a directory, are durable. */
export async function syncPath(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Creates a directory and its parents, and waits until their names are durable. */
export async function makeDirectoryDurably(path: string): Promise<void> {
  const absolute = resolve(path);
  const first = makeFolder(absolute);
  if (first === undefined) return;
  for (let made = absolute; made.length >= first.length; made = dirname(made)) await syncPath(dirname(made));
}
