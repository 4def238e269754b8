import type { Bytes } from "./bytes.ts";

/** Who writes into a storage, as it tells others. Plain data. */
export interface StorageHolder {
  /** Such as "a run of examples/gpt/job.ts". */
  readonly what: string;
  readonly pid: number;
  /** Its process, as others of its machine can tell whether that lives. */
  readonly mark?: string;
  readonly host: string;
  /** In ISO 8601. */
  readonly takenAt: string;
  /** As {@link StorageLock.hold}. */
  readonly hold?: string;
}

/** The right to write into a storage, until it is disposed or its process ends. */
export interface StorageLock extends AsyncDisposable {
  /** A word that no other lock has. A storage opened with it, in another thread too, writes under this lock. */
  readonly hold: string;
}

/** How a storage is opened. */
export interface StorageOptions {
  /**
   * The {@link StorageLock.hold} of its writer's lock: each write first makes sure that the lock is still there. Left out to read
   * only, or to write without a lock.
   */
  readonly hold?: string | undefined;
}

/**
 * A place that keeps checkpoints, each a folder of files under a plain name. A folder is either there whole or not at
 * all: it becomes visible by its commit, and goes as one. A writer locks the storage first; anyone may read.
 *
 * Once locked, or opened with the word of a lock, each method that changes anything, of the storage and of its drafts, first makes sure
 * that the lock is still at its place. It throws `CHECKPOINT_MOVED` where the place was moved, removed or taken by another.
 */
export interface CheckpointStorage {
  /** Where it is, for messages. */
  readonly location: string;
  /** The names of all folders, in any order; none where the place does not exist yet. */
  list(): Promise<readonly string[]>;
  /** The name of the folder that was committed last; undefined where that is not known. */
  latest(): Promise<string | undefined>;
  /** Begins a new folder, which takes the place of one of the same name when it is committed. */
  begin(name: string): Promise<StorageDraft>;
  /**
   * Writes into a folder that another process has begun, and commits: its commit makes what this one has finished durable, and
   * its giving up removes that alone.
   * @param ticket - of the draft that was begun
   * @returns undefined where that draft cannot be seen from here: the place is another host's own disk
   */
  join(name: string, ticket: string): Promise<StorageDraft | undefined>;
  /**
   * Writes those files of a folder that this host keeps, where every host has a disk of its own: they are in place at once, and
   * count once the manifest, which lies elsewhere, names them.
   */
  beside(name: string): Promise<StorageDraft>;
  /** Opens a folder for reading. */
  open(name: string): Promise<StoredFolder>;
  /** Removes a folder, if it is there. */
  remove(name: string): Promise<void>;
  /** Removes what drafts of processes that have ended have left. To be called by who has it locked, before its first draft. */
  sweep(): Promise<void>;
  /**
   * Takes the storage, made where it is not there, for one writer: from here on this object writes under the lock.
   * @param what - the writer, for the messages of those who are refused
   * @throws {TroupeError} `CHECKPOINT_LOCKED` naming who has it
   */
  lock(what: string): Promise<StorageLock>;
  /**
   * Makes sure that the lock under which this writes is still there; nothing where there is none.
   * @throws {TroupeError} `CHECKPOINT_MOVED`
   */
  ask(): Promise<void>;
  /** Who has it locked, as far as that can be seen from here; undefined where nobody has. */
  holder(): Promise<StorageHolder | undefined>;
  /** A short text that is kept beside the folders; undefined where there is none. */
  readText(name: string): Promise<string | undefined>;
  /** Puts a short text in the place of the one before: a reader sees the old or the new. */
  writeText(name: string, text: string): Promise<void>;
}

/** A folder that is being written; nobody sees it before its commit. */
export interface StorageDraft {
  /** By which other processes write into it, too: see {@link CheckpointStorage.join}. */
  readonly ticket: string;
  /**
   * Begins a file.
   * @param name - plain, without folders
   * @param sizeBytes - what it will hold, where that is known: a place without room may say so now
   */
  create(name: string, chunkBytes?: number, sizeBytes?: number): Promise<FileSink>;
  /**
   * Makes the folder visible and `latest` name it, once everything is durable. Every file must be finished; the one that
   * was finished last vouches for the others.
   */
  commit(): Promise<void>;
  /** Gives everything up. Nothing is left, files that were not finished included; never throws after a commit. */
  abandon(): Promise<void>;
}

/** A new file that is written from its beginning to its end. */
export interface FileSink {
  /** Appends bytes, which may change again once the promise is fulfilled. One append after the other. */
  append(bytes: Bytes): Promise<void>;
  /** Waits until the bytes are durable. Once; a failure is final. */
  finish(): Promise<FileSums>;
  /** Closes a file that is not to be finished. */
  drop(): void;
}

/** What the bytes of a file were when it was written. */
export interface FileSums {
  readonly sizeBytes: number;
  /** Size of a chunk; the last one may be smaller. */
  readonly chunkBytes: number;
  /** The CRC-32C of each chunk. */
  readonly crc32c: Uint32Array;
  /** The host that keeps it on a disk of its own, as people call it; left out for what lies beside the manifest. */
  readonly host?: string | undefined;
}

/** A folder open for reading. */
export interface StoredFolder {
  /** As its storage lists it. */
  readonly name: string;
  /** For messages; of a local folder, its path. */
  readonly path: string;
  /** @throws {TroupeError} `FILE_READ` where there is none of that name */
  openFile(name: string): Promise<StoredFile>;
}

/** How a file is to be read. */
export interface ReadHow {
  /** What its bytes must be; unchecked where left out. */
  readonly sums?: FileSums | undefined;
  /** What is read, for messages. */
  readonly what: string;
}

/** A file open for reading until it is disposed. */
export interface StoredFile extends AsyncDisposable {
  readonly path: string;
  readonly sizeBytes: number;
  /**
   * Brings stretches of the file into memory, which may hold anything until the promise is fulfilled.
   * @param stretches - three numbers each, in bytes: where it begins in the file, where in `into`, its size
   * @returns how many bytes of the file were read: with checksums whole chunks
   * @throws {TroupeError} `CHECKPOINT_DAMAGED` naming file, chunk and `what` for other bytes than the checksums', or fewer
   */
  read(stretches: Float64Array, into: Bytes, how: ReadHow): Promise<number>;
}

/** All of one stretch that is to lie at the beginning of memory. */
export function oneStretch(begin: number, sizeBytes: number): Float64Array {
  return Float64Array.of(begin, 0, sizeBytes);
}
