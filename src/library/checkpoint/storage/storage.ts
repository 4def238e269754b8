import { TroupeError } from "../../../errors/index.ts";
import type { Bytes } from "./bytes.ts";

/** The most bytes of a text of ours, unless its reader allows more. */
export const maxTextBytes = 1 << 16;

/** A storage's writer, as it identifies itself to others. Plain data. */
export interface StorageHolder {
  /** Such as "a run of examples/gpt/job.ts". */
  readonly what: string;
  readonly pid: number;
  /** Mark of its process, by which others on its machine can tell whether it lives. */
  readonly mark?: string;
  readonly host: string;
  /** In ISO 8601. */
  readonly takenAt: string;
  /** See {@link StorageLock.hold}. */
  readonly hold?: string;
}

/** The right to write into a storage, until it is disposed or its process ends. */
export interface StorageLock extends AsyncDisposable {
  /** The lock's unique token. A storage opened with it, in another thread too, writes under this lock. */
  readonly hold: string;
}

/** Options of a storage. */
export interface StorageOptions {
  /**
   * Token of its writer's lock ({@link StorageLock.hold}): each write first checks that the lock is still there. Left
   * out to read only, or to write without a lock.
   */
  readonly hold?: string | undefined;
}

/**
 * Stores checkpoints, each a folder of files with a plain name. A folder appears complete with its commit and disappears at once.
 * A writer locks the storage first; anyone may read.
 *
 * Once locked, or opened with a lock's token, every method that changes anything, of the storage or of its drafts, first checks
 * that the lock is still in place. It throws `CHECKPOINT_MOVED` where the place was moved, removed or taken by another.
 */
export interface CheckpointStorage {
  /** Its location, for messages. */
  readonly location: string;
  /** Names of all folders, in any order; none where the place does not exist yet. */
  list(): Promise<readonly string[]>;
  /** Name of the folder committed last; undefined where that is unknown. */
  latest(): Promise<string | undefined>;
  /** Starts a new folder, which replaces one of the same name when it is committed. */
  begin(name: string): Promise<StorageDraft>;
  /**
   * Joins a folder that another process has begun and will commit. That commit makes the files that this draft has
   * finished durable; abandoning this draft removes only its own.
   * @param ticket - of the draft that was begun
   * @returns undefined where that draft is not visible: the place is another host's own disk
   */
  join(name: string, ticket: string): Promise<StorageDraft | undefined>;
  /**
   * Writes this host's files of a folder, where every host has a disk of its own: they are in place at once, and count
   * once the manifest, on another disk, names them.
   */
  beside(name: string): Promise<StorageDraft>;
  /** Opens a folder for reading. */
  open(name: string): Promise<StoredFolder>;
  /** Removes a folder, if it is there. */
  remove(name: string): Promise<void>;
  /** Removes drafts of processes that have ended. The caller must hold the lock; call it before the first draft. */
  sweep(): Promise<void>;
  /**
   * Locks the storage for one writer, creating it if needed: from here on this object writes under the lock.
   * @param what - the writer, for the messages of those who are refused
   * @throws {TroupeError} `CHECKPOINT_LOCKED` naming the holder
   */
  lock(what: string): Promise<StorageLock>;
  /**
   * Checks that the lock of this object's writes is still there; does nothing without a lock.
   * @throws {TroupeError} `CHECKPOINT_MOVED`
   */
  ask(): Promise<void>;
  /** The holder of the lock, as far as it is visible; undefined without one. */
  holder(): Promise<StorageHolder | undefined>;
  /**
   * Reads a short text next to the folders; undefined where there is none.
   * @param maxBytes - Default: {@link maxTextBytes}
   * @throws {TroupeError} `FILE_READ` for a file with more bytes: it is not taken for none
   */
  readText(name: string, maxBytes?: number): Promise<string | undefined>;
  /** Replaces a short text: a reader sees the old or the new one. */
  writeText(name: string, text: string): Promise<void>;
}

/** A folder that is being written; not visible before its commit. */
export interface StorageDraft {
  /** Ticket with which other processes join it, see {@link CheckpointStorage.join}. */
  readonly ticket: string;
  /**
   * Creates a file.
   * @param name - plain, without folders
   * @param sizeBytes - its size, where that is known: a place without room may refuse it now
   */
  create(name: string, chunkBytes?: number, sizeBytes?: number): Promise<FileSink>;
  /**
   * Makes the folder visible and lets `latest` name it, once everything is durable. Every file must be finished; the
   * one that was finished last vouches for the others.
   */
  commit(): Promise<void>;
  /** Discards everything, unfinished files included; never throws after a commit. */
  abandon(): Promise<void>;
}

/** A new file that is written sequentially. */
export interface FileSink {
  /** Appends bytes, which may change again once the promise is fulfilled. One append after the other. */
  append(bytes: Bytes): Promise<void>;
  /** Waits until the bytes are durable. Call it once; an error is final. */
  finish(): Promise<FileSums>;
  /** Closes a file that will not be finished. */
  drop(): void;
}

/** Checksums of a file, from when it was written. */
export interface FileSums {
  readonly sizeBytes: number;
  /** Size of a chunk; the last one may be smaller. */
  readonly chunkBytes: number;
  /** The CRC-32C of each chunk. */
  readonly crc32c: Uint32Array;
  /** Name of the host that has it on a disk of its own; left out for a file next to the manifest. */
  readonly host?: string | undefined;
}

/** A folder open for reading. */
export interface StoredFolder {
  /** Its name in its storage. */
  readonly name: string;
  /** For messages; a local folder's path. */
  readonly path: string;
  /** Opens a file. @throws {TroupeError} `FILE_READ` for an unknown name */
  openFile(name: string): Promise<StoredFile>;
}

/** Options of a read. */
export interface ReadHow {
  /** Checksums of the file; left out: its bytes are not checked. */
  readonly sums?: FileSums | undefined;
  /** Name of the data for messages. */
  readonly what: string;
}

/** A file open for reading until it is disposed. */
export interface StoredFile extends AsyncDisposable {
  readonly path: string;
  readonly sizeBytes: number;
  /**
   * Reads stretches of the file into memory, whose content is undefined until the promise is fulfilled.
   * @param stretches - three numbers each, in bytes: start in the file, start in `into`, size
   * @returns number of bytes read from the file: with checksums, complete chunks
   * @throws {TroupeError} `CHECKPOINT_DAMAGED` naming file, chunk and `what` for bytes that do not match the checksums,
   * or too few
   */
  read(stretches: Float64Array, into: Bytes, how: ReadHow): Promise<number>;
}

/** The error for a file with more bytes than {@link CheckpointStorage.readText} may read. */
export function tooLong(path: string, maxBytes: number): TroupeError {
  return new TroupeError("FILE_READ", {
    where: "checkpoint",
    expected: `at most ${maxBytes} bytes in ${path}`,
    got: "more",
    hint: "is it of another program? Move it away",
    fields: { path },
  });
}

/** A single stretch, placed at the start of memory. */
export function oneStretch(begin: number, sizeBytes: number): Float64Array {
  return Float64Array.of(begin, 0, sizeBytes);
}
