import { randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, open, rm } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { native } from "../../../compute/tensor/index.ts";
import { TroupeError } from "../../../errors/index.ts";
import { isStillAt } from "../../../errors/untrusted/index.ts";
import { hasEnded, ownMark } from "../../../runtime/process-mark.ts";
import type { StorageHolder } from "./storage.ts";

/** The locked file: its text names the holder, the lock shows that the holder lives. */
const lockName = ".lock";

// A pipe or a link in its place must neither block the thread nor lead elsewhere.
const OPEN_FLAGS = constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW | constants.O_NONBLOCK;

// Anyone who may read a folder may look at its lock.
const LOOK_FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
/** A holder that has just locked the folder and not yet written its name. */
const unknownHolder: StorageHolder = { what: "another", pid: 0, host: "", takenAt: "" };

/**
 * Locks a folder for one writer, by the kernel's lock on a file in it. The lock ends with its process, also after `kill -9`, and
 * other hosts see it where they share the file system. On a file system without locks, the folder counts as locked.
 */
export class FolderLock {
  /** As {@link StorageLock.hold}. */
  readonly hold: string;
  readonly #file: FileHandle;

  private constructor(file: FileHandle, hold: string) {
    this.hold = hold;
    this.#file = file;
  }

  /**
   * Locks a folder.
   * @param directory - must exist
   * @param what - the writer, for others' messages
   * @throws {TroupeError} `CHECKPOINT_LOCKED` naming the holder
   */
  static async take(directory: string, what: string): Promise<FolderLock> {
    const path = join(directory, lockName);
    for (;;) {
      const file = await open(path, OPEN_FLAGS, 0o644);
      try {
        if (native().tryLock(file.fd) === false) throw locked(directory, await holderIn(file));
        // Its last holder may have removed the file since it was opened: then locking it means nothing.
        if (await isStillAt(path, file)) {
          const hold = randomUUID();
          await writeHolder(file, what, hold);
          return new FolderLock(file, hold);
        }
      } catch (error) {
        await file.close();
        throw error;
      }
      await file.close();
    }
  }

  /** Returns the holder of a folder's lock; undefined without one. Does not disturb a living holder on this machine. */
  static async holder(directory: string): Promise<StorageHolder | undefined> {
    const file = await open(join(directory, lockName), LOOK_FLAGS).catch(() => undefined);
    if (file === undefined) return undefined;
    try {
      const holder = await holderIn(file);
      const isHere = holder?.mark !== undefined && holder.host === hostname();
      if (isHere && !hasEnded(holder.mark)) return holder;
      return native().tryLock(file.fd) === false ? (holder ?? unknownHolder) : undefined;
    } finally {
      await file.close();
    }
  }

  /** Unlocks the folder; idempotent. @param directory - a path of the folder, wherever it was moved */
  async release(directory: string): Promise<void> {
    if (this.#file.fd < 0) return;
    const path = join(directory, lockName);
    // The file may have been removed, and another's be in its place.
    if (await isStillAt(path, this.#file)) await rm(path, { force: true }).catch(() => {});
    await this.#file.close();
  }
}

/** Describes this process as a holder. */
export function holderNow(what: string, hold: string): StorageHolder {
  return { hold, what, pid: process.pid, mark: ownMark, host: hostname(), takenAt: new Date().toISOString() };
}

/** The error for a locked storage. @param holder - undefined where it has not yet written its name */
export function locked(location: string, holder: StorageHolder | undefined): TroupeError {
  const got =
    holder === undefined
      ? "another process that has just started"
      : `${holder.what}, process ${holder.pid} on ${holder.host} since ${holder.takenAt}`;
  return new TroupeError("CHECKPOINT_LOCKED", {
    where: "checkpoint",
    expected: `to be the only writer into ${location}`,
    got,
    hint: "wait until it ends, or give another folder",
    fields: { location, ...holder },
  });
}

/** Reads a holder from text; undefined for other text. */
export function parseHolder(text: string): StorageHolder | undefined {
  try {
    const holder = JSON.parse(text) as Partial<StorageHolder>;
    return typeof holder.pid === "number" && typeof holder.host === "string"
      ? (holder as StorageHolder)
      : undefined;
  } catch {
    return undefined;
  }
}

async function writeHolder(file: FileHandle, what: string, hold: string): Promise<void> {
  await file.truncate();
  await file.write(`${JSON.stringify(holderNow(what, hold))}\n`, 0);
}

/**
 * Returns undefined for the error of a path without a file of ours: nothing is there, a part is not a folder, or it is
 * a link. Throws any other error.
 */
export function undefinedWhereAbsent(error: NodeJS.ErrnoException): undefined {
  if (["ENOENT", "ENOTDIR", "ELOOP"].includes(error.code ?? "")) return undefined;
  throw error;
}

/** Reads the holder from a folder's lock file; undefined where there is none. */
export async function holderAt(directory: string): Promise<StorageHolder | undefined> {
  const file = await open(join(directory, lockName), LOOK_FLAGS).catch(undefinedWhereAbsent);
  if (file === undefined) return undefined;
  try {
    return await holderIn(file);
  } finally {
    await file.close();
  }
}

async function holderIn(file: FileHandle): Promise<StorageHolder | undefined> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(1024), 0, 1024, 0);
  return parseHolder(buffer.subarray(0, bytesRead).toString());
}
