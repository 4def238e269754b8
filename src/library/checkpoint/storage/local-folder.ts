import { randomUUID } from "node:crypto";
import { lstat, readdir, rename, rm, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { TroupeError } from "../../../errors/index.ts";
import { draftNameOf, isLeftDraft, makeDirectoryDurably, replaceDurably, syncPath } from "./durable-file.ts";
import { FolderLock } from "./folder-lock.ts";
import { HeldFolder } from "./held-folder.ts";
import {
  type CheckpointStorage,
  type FileSink,
  maxTextBytes,
  oneStretch,
  type StorageDraft,
  type StorageHolder,
  type StorageLock,
  type StorageOptions,
  type StoredFolder,
  tooLong,
} from "./storage.ts";
import { SummedReader, SummedWriter } from "./summed-file.ts";

/** Prefix of a folder's name while a new one replaces it. */
export const replacedPrefix = ".replaced-";
/** Prefix of a folder's name while it is being removed. */
const removingPrefix = ".removing-";

const latestName = "latest";
const uuidLength = 36;

/** Changes something in the folder of a storage, given a path of that folder; see {@link HeldFolder.write}. */
type Write = <T>(act: (root: string) => Promise<T>) => Promise<T>;

/** Checkpoints in a folder of this machine, a folder for each. Every operation survives a power cut at any moment. */
export class LocalFolder implements CheckpointStorage {
  readonly location: string;
  readonly #hold: string | undefined;
  /** The folder that receives all changes, from the lock or the first write on. */
  #held: HeldFolder | undefined;
  /** Tickets of discarded drafts that could not be removed. */
  readonly #left = new Set<string>();

  /**
   * @param directory - of the checkpoints; created by the first draft, unless it is held: one that was taken away is
   * not created again
   */
  constructor(directory: string, { hold }: StorageOptions = {}) {
    this.location = directory;
    this.#hold = hold;
  }

  async list(): Promise<readonly string[]> {
    const entries = await entriesOf(this.location);
    // A folder set aside for a new one that may not have arrived still counts.
    const names = entries.map((entry) => replacedName(entry) ?? entry);
    return [...new Set(names)].filter((name) => !name.startsWith(".") && name !== latestName);
  }

  async latest(): Promise<string | undefined> {
    const text = await this.readText(latestName).catch(() => "");
    return text?.trim() || undefined;
  }

  begin(name: string): Promise<StorageDraft> {
    return this.#write(async (root) => {
      for (const left of this.#left) await this.#discard(left);
      const ticket = draftNameOf(name);
      try {
        await makeDirectoryDurably(join(root, ticket));
      } catch (error) {
        await this.#discard(ticket);
        throw error;
      }
      return new LocalDraft(this.location, name, ticket, this.#write, () => this.#discard(ticket));
    });
  }

  async join(_name: string, ticket: string): Promise<StorageDraft | undefined> {
    const path = join(this.location, basename(ticket));
    return (await exists(path)) ? new FilesDraft(path, ticket, this.#write) : undefined;
  }

  async beside(name: string): Promise<StorageDraft> {
    await this.#write((root) => makeDirectoryDurably(join(root, name)));
    // A host's own folder has no lock: it is held from the first write on.
    this.#held ??= await HeldFolder.open(this.location);
    return new FilesDraft(join(this.location, name), name, this.#write);
  }

  async open(name: string): Promise<StoredFolder> {
    const path = join(this.location, name);
    if (await exists(path)) return openFolder(name, path);
    const aside = (await entriesOf(this.location)).find((entry) => replacedName(entry) === name);
    return openFolder(name, aside === undefined ? path : join(this.location, aside));
  }

  remove(name: string): Promise<void> {
    return this.#write(async (root) => {
      const path = join(root, name);
      if (!(await exists(path))) return;
      // Renamed first, so that no reader finds half of it.
      const removing = join(root, `${removingPrefix}${name}-${randomUUID()}`);
      await rename(path, removing);
      await rm(removing, { recursive: true, force: true });
    });
  }

  sweep(): Promise<void> {
    return this.#write(async (root) => {
      for (const entry of await entriesOf(root)) {
        const path = join(root, entry);
        const leftover = isLeftDraft(entry) || entry.startsWith(removingPrefix);
        if (leftover) await rm(path, { recursive: true, force: true });
        const name = replacedName(entry);
        if (name === undefined) continue;
        if (await exists(join(root, name))) await rm(path, { recursive: true, force: true });
        else await rename(path, join(root, name));
      }
    });
  }

  async lock(what: string): Promise<StorageLock> {
    try {
      await makeDirectoryDurably(this.location);
      await refuseFolder(join(this.location, latestName));
      const lock = await FolderLock.take(this.location, what);
      return await this.#holdUnder(lock);
    } catch (cause) {
      if (cause instanceof TroupeError) throw cause;
      throw new TroupeError("CHECKPOINT_DIRECTORY", {
        where: "checkpoint",
        expected: `a folder that can be written at ${this.location}`,
        got: `"${(cause as Error).message}"`,
        hint: "give another",
        fields: { directory: this.location },
        cause,
      });
    }
  }

  holder(): Promise<StorageHolder | undefined> {
    return FolderLock.holder(this.location);
  }

  async readText(name: string, maxBytes = maxTextBytes): Promise<string | undefined> {
    const path = join(this.location, name);
    // Only a plain file can be ours: follows no link, waits for no pipe.
    const found = await lstat(path).catch(() => undefined);
    if (!found?.isFile()) return undefined;
    await using file = await SummedReader.open(path);
    if (file.sizeBytes > maxBytes) throw tooLong(path, maxBytes);
    const bytes = new Uint8Array(file.sizeBytes);
    await file.read(oneStretch(0, bytes.length), bytes, { what: name });
    return Buffer.from(bytes).toString();
  }

  /** Adds a file to an existing folder, in place once it is durable. @param write - appends its bytes */
  putFile(folder: string, name: string, write: (file: FileSink) => Promise<void>): Promise<void> {
    return this.#write((root) => replaceDurably(join(root, folder, name), write));
  }

  ask(): Promise<void> {
    return this.#write(async () => {});
  }

  writeText(name: string, text: string): Promise<void> {
    return this.#write((root) => putText(root, name, text));
  }

  async #holdUnder(lock: FolderLock): Promise<StorageLock> {
    try {
      const held = await HeldFolder.open(this.location, lock.hold);
      this.#held = held;
      return {
        hold: lock.hold,
        [Symbol.asyncDispose]: async () => {
          if (this.#held === held) this.#held = undefined;
          await lock.release(held.path);
          held.close();
        },
      };
    } catch (error) {
      await lock.release(this.location);
      throw error;
    }
  }

  /** Makes each change in the folder, after checking that the folder is still this writer's. */
  readonly #write: Write = async (act) => {
    if (this.#hold !== undefined) this.#held ??= await HeldFolder.open(this.location, this.#hold);
    return this.#held === undefined ? act(this.location) : this.#held.write(act);
  };

  /** Removes a draft by its unique name; if it cannot be removed now, the next draft removes it first. */
  async #discard(ticket: string): Promise<void> {
    try {
      // The draft is this writer's even if the folder was moved.
      await rm(join(this.#held?.path ?? this.location, ticket), { recursive: true, force: true });
      this.#left.delete(ticket);
    } catch {
      this.#left.add(ticket);
    }
  }
}

class LocalDraft implements StorageDraft {
  readonly ticket: string;
  readonly #location: string;
  readonly #name: string;
  readonly #write: Write;
  readonly #discard: () => Promise<void>;
  readonly #open = new Set<FileSink>();
  /** The name of the file that was written last and vouches for the others. */
  #last = "";
  #committed = false;

  constructor(location: string, name: string, ticket: string, write: Write, discard: () => Promise<void>) {
    this.#location = location;
    this.#name = name;
    this.ticket = ticket;
    this.#write = write;
    this.#discard = discard;
  }

  async create(name: string, chunkBytes?: number, sizeBytes?: number): Promise<FileSink> {
    // The draft's name is unique, so its errors may use the path that people know.
    const path = join(this.#location, this.ticket, name);
    const file = await this.#write(() => SummedWriter.create(path, chunkBytes, sizeBytes));
    this.#open.add(file);
    this.#last = name;
    return file;
  }

  async commit(): Promise<void> {
    await this.#write(async (root) => {
      await syncPath(join(root, this.ticket));
      await putInPlace(root, this.ticket, this.#name, this.#last);
      this.#committed = true;
    });
    await this.#write((root) => putText(root, latestName, `${this.#name}\n`));
  }

  async abandon(): Promise<void> {
    for (const file of this.#open) file.drop();
    this.#open.clear();
    if (!this.#committed) await this.#discard();
  }
}

/** Files in a folder that another process commits, or has committed. */
class FilesDraft implements StorageDraft {
  readonly ticket: string;
  readonly #path: string;
  readonly #write: Write;
  readonly #files = new Map<string, FileSink>();
  #committed = false;

  constructor(path: string, ticket: string, write: Write) {
    this.#path = path;
    this.ticket = ticket;
    this.#write = write;
  }

  async create(name: string, chunkBytes?: number, sizeBytes?: number): Promise<FileSink> {
    const path = join(this.#path, name);
    const file = await this.#write(() => SummedWriter.create(path, chunkBytes, sizeBytes));
    this.#files.set(path, file);
    return file;
  }

  async commit(): Promise<void> {
    await this.#write(() => syncPath(this.#path));
    this.#committed = true;
  }

  async abandon(): Promise<void> {
    for (const file of this.#files.values()) file.drop();
    const files = [...this.#files.keys()];
    this.#files.clear();
    if (this.#committed || files.length === 0) return;
    // If the folder was moved, they moved with it.
    await this.#write(async () => {
      for (const path of files) await rm(path, { force: true });
    }).catch(() => {});
  }
}

function openFolder(name: string, path: string): StoredFolder {
  return { name, path, openFile: (file) => SummedReader.open(join(path, file)) };
}

/** The name that a folder had before it was set aside for a new one; undefined for any other. */
function replacedName(entry: string): string | undefined {
  return entry.startsWith(replacedPrefix) ? entry.slice(replacedPrefix.length, -uuidLength - 1) : undefined;
}

/** Replaces a text. @throws {TroupeError} `CHECKPOINT_DIRECTORY` where a folder has its name */
async function putText(parent: string, name: string, text: string): Promise<void> {
  const path = join(parent, name);
  try {
    await replaceDurably(path, (file) => file.append(Buffer.from(text)));
  } catch (cause) {
    await refuseFolder(path);
    throw cause;
  }
}

/** Checks that no folder has the name of a file of ours. @throws {TroupeError} `CHECKPOINT_DIRECTORY` */
async function refuseFolder(path: string): Promise<void> {
  const found = await lstat(path).catch(() => undefined);
  if (!found?.isDirectory()) return;
  throw new TroupeError("CHECKPOINT_DIRECTORY", {
    where: "checkpoint",
    expected: `${path} to be a file`,
    got: "a folder",
    hint: "move it away",
    fields: { path },
  });
}

/**
 * Moves a draft to its final name.
 * @param voucher - a file that an existing folder of this name must have; any other folder is not replaced
 */
async function putInPlace(parent: string, ticket: string, name: string, voucher: string): Promise<void> {
  const temporary = join(parent, ticket);
  const place = join(parent, name);
  const aside = join(parent, `${replacedPrefix}${name}-${randomUUID()}`);
  const replaces = await exists(place);
  if (replaces && !(await exists(join(place, voucher))) && (await entriesOf(place)).length > 0)
    throw notOurs(place, voucher, "a new one replaces");
  // A folder cannot be renamed over one with files, so the old one is set aside first. Readers find it there.
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

/**
 * The error for a folder that is no checkpoint, so that its files may be the user's.
 * @param voucher - the file that it lacks
 * @param fate - what would become of a checkpoint
 */
export function notOurs(path: string, voucher: string, fate: string): TroupeError {
  return new TroupeError("CHECKPOINT_TAKEN", {
    where: "checkpoint",
    expected: `${path} to be a checkpoint, which ${fate}`,
    got: `one without ${voucher}`,
    hint: "move it away: its files may be yours",
    fields: { path },
  });
}

async function entriesOf(path: string): Promise<string[]> {
  return readdir(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT" || error.code === "ENOTDIR") return [];
    throw error;
  });
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT" || error.code === "ENOTDIR") return false;
      throw error;
    },
  );
}
