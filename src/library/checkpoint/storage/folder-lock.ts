import { randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, open, rm, stat } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { native } from "../../../compute/tensor/index.ts";
import { TroupeError } from "../../../errors/index.ts";
import { hasEnded, ownMark } from "../../../runtime/process-mark.ts";
import type { StorageHolder } from "./storage.ts";

/** The file that is locked: what it says names its holder, that it is locked says that the holder lives. */
const lockName = ".lock";

// A pipe or a link in its place must neither hold the thread nor lead elsewhere.
const OPEN_FLAGS = constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW | constants.O_NONBLOCK;

// Whoever may read a folder may ask.
const LOOK_FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
/** Who has just taken a folder and not said who it is. */
const unknownHolder: StorageHolder = { what: "another", pid: 0, host: "", takenAt: "" };

/**
 * A folder taken for one writer, by the kernel's lock on a file in it: gone with the process that holds it, `kill -9`
 * included, and known to other hosts where their file system is. Where that knows no locks, the folder counts as taken.
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
   * @param directory - that is there
   * @param what - the writer, for others' messages
   * @throws {TroupeError} `CHECKPOINT_LOCKED` naming who has it
   */
  static async take(directory: string, what: string): Promise<FolderLock> {
    const path = join(directory, lockName);
    for (;;) {
      const file = await open(path, OPEN_FLAGS, 0o644);
      try {
        if (native().tryLock(file.fd) === false) throw locked(directory, await holderIn(file));
        // Its last holder may have removed it since it was opened: then this is nobody's lock.
        if (await isIn(path, file)) {
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

  /** @returns who has a folder; undefined where nobody has. A living holder on this machine is not disturbed by the question */
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

  /**
   * Gives the folder back; idempotent.
   * @param directory - a path of the folder, wherever it was moved
   */
  async release(directory: string): Promise<void> {
    if (this.#file.fd < 0) return;
    const path = join(directory, lockName);
    // The file may have been removed since, and its place may be another's.
    if (await isIn(path, this.#file)) await rm(path, { force: true }).catch(() => {});
    await this.#file.close();
  }
}

/** What a writer tells others of itself. */
export function holderNow(what: string, hold: string): StorageHolder {
  return { hold, what, pid: process.pid, mark: ownMark, host: hostname(), takenAt: new Date().toISOString() };
}

/** @param holder - undefined where it has not said who it is */
export function locked(location: string, holder: StorageHolder | undefined): TroupeError {
  const got =
    holder === undefined
      ? "another that has just come"
      : `${holder.what}, process ${holder.pid} on ${holder.host} since ${holder.takenAt}`;
  return new TroupeError(
    "CHECKPOINT_LOCKED",
    {
      where: "checkpoint",
      expected: `to be the only writer into ${location}`,
      got,
      hint: "wait for its end, or give another folder",
    },
    { fields: { location, ...holder } },
  );
}

/** @returns what a text says of a holder; undefined where it is none */
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

/** Gives undefined if the path leads to no file of ours: nothing is there, a part is no folder, or it is a link. @throws any other failure */
export function undefinedWhereAbsent(error: NodeJS.ErrnoException): undefined {
  if (["ENOENT", "ENOTDIR", "ELOOP"].includes(error.code ?? "")) return undefined;
  throw error;
}

/** @returns what the lock's file in a folder says of its holder; undefined where there is none */
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

async function isIn(path: string, file: FileHandle): Promise<boolean> {
  const [own, there] = await Promise.all([file.stat(), stat(path).catch(() => undefined)]);
  return own.ino === there?.ino && own.dev === there.dev;
}
