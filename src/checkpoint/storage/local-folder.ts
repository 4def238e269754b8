import { randomUUID } from "node:crypto";
import { lstat, mkdir, readdir, rename, rm, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { TroupeError } from "../../errors.ts";
import { draftNameOf, isLeftDraft, makeDirectoryDurably, replaceDurably, syncPath } from "./durable-file.ts";
import { FolderLock } from "./folder-lock.ts";
import {
  type CheckpointStorage,
  type FileSink,
  oneStretch,
  type StorageDraft,
  type StorageHolder,
  type StorageLock,
  type StoredFile,
  type StoredFolder,
} from "./storage.ts";
import { SummedReader, SummedWriter } from "./summed-file.ts";

/** What the name of a folder begins with while a new one takes its place. */
export const replacedPrefix = ".replaced-";
/** What the name of a folder begins with while it is being removed. */
const removingPrefix = ".removing-";

const latestName = "latest";
const uuidLength = 36;
/** A larger file is no text of ours, whatever its name. */
const maxTextBytes = 1 << 16;

/** How a folder is used. */
export interface LocalFolderOptions {
  /**
   * Whether a draft makes the folder where it is not there. One that was locked and is taken away is not to be made anew: whoever
   * came then would lock another file, and be let in. true
   */
  readonly isMade?: boolean;
}

/** Checkpoints in a folder of this machine, each a folder in it. Each of its operations survives a power cut at any moment. */
export class LocalFolder implements CheckpointStorage {
  readonly location: string;
  readonly #isMade: boolean;
  /** Of drafts that came to nothing and could not be removed. */
  readonly #left = new Set<string>();

  /** @param directory - of the checkpoints. Default: made by the first draft. */
  constructor(directory: string, { isMade = true }: LocalFolderOptions = {}) {
    this.location = directory;
    this.#isMade = isMade;
  }

  async list(): Promise<readonly string[]> {
    const entries = await entriesOf(this.location);
    // Put aside for a new one that may not have arrived: as good as it was.
    const names = entries.map((entry) => replacedName(entry) ?? entry);
    return [...new Set(names)].filter((name) => !name.startsWith(".") && name !== latestName);
  }

  async latest(): Promise<string | undefined> {
    const text = await this.readText(latestName).catch(() => "");
    return text?.trim() || undefined;
  }

  async begin(name: string): Promise<StorageDraft> {
    for (const path of this.#left) await this.#discard(path);
    const temporary = join(this.location, draftNameOf(name));
    try {
      if (this.#isMade) await makeDirectoryDurably(temporary);
      else await mkdir(temporary);
    } catch (error) {
      await this.#discard(temporary);
      throw error;
    }
    return new LocalDraft(this.location, name, temporary, () => this.#discard(temporary));
  }

  async join(_name: string, ticket: string): Promise<StorageDraft | undefined> {
    const path = join(this.location, basename(ticket));
    return (await exists(path)) ? new FilesDraft(path, ticket) : undefined;
  }

  async beside(name: string): Promise<StorageDraft> {
    const path = join(this.location, name);
    await makeDirectoryDurably(path);
    return new FilesDraft(path, name);
  }

  async open(name: string): Promise<StoredFolder> {
    const path = join(this.location, name);
    if (await exists(path)) return new OpenFolder(name, path);
    const aside = (await entriesOf(this.location)).find((entry) => replacedName(entry) === name);
    return new OpenFolder(name, aside === undefined ? path : join(this.location, aside));
  }

  async remove(name: string): Promise<void> {
    const path = join(this.location, name);
    if (!(await exists(path))) return;
    // First out of sight as a whole: no reader finds half of it.
    const removing = join(this.location, `${removingPrefix}${name}-${randomUUID()}`);
    await rename(path, removing);
    await rm(removing, { recursive: true, force: true });
  }

  async sweep(): Promise<void> {
    for (const entry of await entriesOf(this.location)) {
      const path = join(this.location, entry);
      const leftover = isLeftDraft(entry) || entry.startsWith(removingPrefix);
      if (leftover) await rm(path, { recursive: true, force: true });
      const name = replacedName(entry);
      if (name === undefined) continue;
      if (await exists(join(this.location, name))) await rm(path, { recursive: true, force: true });
      else await rename(path, join(this.location, name));
    }
  }

  async lock(what: string): Promise<StorageLock> {
    try {
      await makeDirectoryDurably(this.location);
      return await FolderLock.take(this.location, what);
    } catch (cause) {
      if (cause instanceof TroupeError) throw cause;
      throw new TroupeError(
        "CHECKPOINT_DIRECTORY",
        {
          where: "checkpoint",
          expected: `a folder that can be written at ${this.location}`,
          got: `"${(cause as Error).message}"`,
          hint: "give another",
        },
        { fields: { directory: this.location }, cause },
      );
    }
  }

  holder(): Promise<StorageHolder | undefined> {
    return FolderLock.holder(this.location);
  }

  async readText(name: string): Promise<string | undefined> {
    const path = join(this.location, name);
    // What is no plain file, or a large one, is none of ours: no link is followed, no pipe waited for.
    const found = await lstat(path).catch(() => undefined);
    if (!found?.isFile() || found.size > maxTextBytes) return undefined;
    await using file = await SummedReader.open(path);
    const bytes = new Uint8Array(Math.min(file.sizeBytes, maxTextBytes));
    await file.read(oneStretch(0, bytes.length), bytes, { what: name });
    return Buffer.from(bytes).toString();
  }

  writeText(name: string, text: string): Promise<void> {
    return replaceDurably(join(this.location, name), (file) => file.append(Buffer.from(text)));
  }

  /** Removes a draft; one that cannot be removed now, as where no descriptor is left, goes before the next begins. */
  async #discard(path: string): Promise<void> {
    try {
      await rm(path, { recursive: true, force: true });
      this.#left.delete(path);
    } catch {
      this.#left.add(path);
    }
  }
}

class LocalDraft implements StorageDraft {
  readonly ticket: string;
  readonly #parent: string;
  readonly #name: string;
  readonly #temporary: string;
  readonly #discard: () => Promise<void>;
  readonly #open = new Set<FileSink>();
  #committed = false;

  constructor(parent: string, name: string, temporary: string, discard: () => Promise<void>) {
    this.#parent = parent;
    this.#name = name;
    this.#temporary = temporary;
    this.#discard = discard;
    this.ticket = basename(temporary);
  }

  async create(name: string, chunkBytes?: number, sizeBytes?: number): Promise<FileSink> {
    const file = await SummedWriter.create(join(this.#temporary, name), chunkBytes, sizeBytes);
    this.#open.add(file);
    return file;
  }

  async commit(): Promise<void> {
    await syncPath(this.#temporary);
    await putInPlace(this.#temporary, this.#parent, this.#name);
    this.#committed = true;
    await replaceDurably(join(this.#parent, latestName), (file) =>
      file.append(Buffer.from(`${this.#name}\n`)),
    );
  }

  async abandon(): Promise<void> {
    for (const file of this.#open) file.drop();
    this.#open.clear();
    if (!this.#committed) await this.#discard();
  }
}

/** Files in a folder whose name is somebody else's to give, or given. */
class FilesDraft implements StorageDraft {
  readonly ticket: string;
  readonly #path: string;
  readonly #files = new Map<string, FileSink>();
  #committed = false;

  constructor(path: string, ticket: string) {
    this.#path = path;
    this.ticket = ticket;
  }

  async create(name: string, chunkBytes?: number, sizeBytes?: number): Promise<FileSink> {
    const path = join(this.#path, name);
    const file = await SummedWriter.create(path, chunkBytes, sizeBytes);
    this.#files.set(path, file);
    return file;
  }

  async commit(): Promise<void> {
    await syncPath(this.#path);
    this.#committed = true;
  }

  async abandon(): Promise<void> {
    for (const file of this.#files.values()) file.drop();
    if (!this.#committed) for (const path of this.#files.keys()) await rm(path, { force: true });
    this.#files.clear();
  }
}

class OpenFolder implements StoredFolder {
  readonly name: string;
  readonly path: string;

  constructor(name: string, path: string) {
    this.name = name;
    this.path = path;
  }

  openFile(name: string): Promise<StoredFile> {
    return SummedReader.open(join(this.path, name));
  }
}

/** The name that a folder had before it was put aside for a new one; undefined for any other. */
function replacedName(entry: string): string | undefined {
  return entry.startsWith(replacedPrefix) ? entry.slice(replacedPrefix.length, -uuidLength - 1) : undefined;
}

async function putInPlace(temporary: string, parent: string, name: string): Promise<void> {
  const place = join(parent, name);
  const aside = join(parent, `${replacedPrefix}${name}-${randomUUID()}`);
  const replaces = await exists(place);
  // A folder cannot be renamed over one that holds files, so the old one steps aside first. Readers know it there.
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
      if (error.code === "ENOENT") return false;
      throw error;
    },
  );
}
