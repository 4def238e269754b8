import { randomUUID } from "node:crypto";
import { open, rename, rm } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { makeFolder } from "../../../errors/untrusted/index.ts";
import { hasEnded, ownMark } from "../../../runtime/process-mark.ts";
import type { FileSink } from "./storage.ts";
import { SummedWriter } from "./summed-file.ts";

/** What the names of files that are not yet in place begin with. */
const savingPrefix = ".saving-";

/** A new name for what is to be called `name` once it is in place. */
export function draftNameOf(name: string): string {
  return `${savingPrefix}${name}-${ownMark}-${randomUUID()}`;
}

/** Whether a name is that of a draft that nobody will finish: its process has ended, or is this one, which begins anew. */
export function isLeftDraft(entry: string): boolean {
  if (!entry.startsWith(savingPrefix)) return false;
  const [, mark] = /-(\d+\.\d+)-[0-9a-f-]{36}$/.exec(entry) ?? [];
  return mark === undefined || mark === ownMark || hasEnded(mark);
}

/** Puts a file in the place of another, if there is one: a reader sees the old or the new, also after a power cut. */
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

/** Waits until the disk has the bytes of a file, or the names in a directory. */
export async function syncPath(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Makes a directory and those above it, and waits until the disk has their names. */
export async function makeDirectoryDurably(path: string): Promise<void> {
  const absolute = resolve(path);
  const first = makeFolder(absolute);
  if (first === undefined) return;
  for (let made = absolute; made.length >= first.length; made = dirname(made)) await syncPath(dirname(made));
}
