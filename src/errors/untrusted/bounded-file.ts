import { closeSync, constants, fstatSync, openSync, readSync, type Stats } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";

const { O_NOCTTY, O_NONBLOCK, O_RDONLY } = constants;
/** Opening never waits for a writer of a pipe and never takes over a terminal. */
const FLAGS = O_RDONLY | O_NONBLOCK | O_NOCTTY;

const MIB = 1 << 20;

/**
 * Size limits of files that are read into memory at once, in bytes: about ten times the largest known file of the kind, so
 * that a file of another kind is refused before it is read.
 */
export const maxFileBytes = {
  /** A word or two: the name of the latest step, a commit, a token. */
  word: 4_096,
  /** Options, the user's own names, keys, scripts. */
  settings: MIB,
  /** A model's or an adapter's config.json: most of it the names of classes. */
  config: 4 * MIB,
  /** A list of which file holds which tensor: some 100 bytes each. */
  index: 32 * MIB,
  /** A vocabulary and its merges: 35 MB are known. */
  tokenizer: 128 * MIB,
  /** A text in one string, which V8 limits to less than 512 MiB. */
  text: 511 * MIB,
  picture: 64 * MIB,
  /** One hour of CD audio is 600 MB. */
  sound: 2_000 * MIB,
  /** Numbers in binary form, with little else in the file. */
  numbers: 2_000 * MIB,
} as const;

/** Thrown when {@link openRegular} or {@link readBounded} refuses a file. `fileFailure` turns it into the words after "got". */
class FileRefused extends Error {
  /** The system's error code, for the reasons that `fileFailure` has words for. */
  readonly code?: string;

  constructor(message: string, code?: string) {
    super(message);
    if (code !== undefined) this.code = code;
  }
}

/**
 * Opens a regular file for reading, links followed, without ever waiting: a pipe, a socket or a device is refused. The caller
 * owns the handle.
 * @throws {FileRefused} if it is not a regular file; also errors of the file system
 */
export async function openRegular(path: string): Promise<FileHandle> {
  const file = await open(path, FLAGS);
  try {
    checkRegular(await file.stat());
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** Opens like {@link openRegular}, but synchronously. Returns the descriptor, which the caller owns. */
export function openRegularSync(path: string): number {
  const descriptor = openSync(path, FLAGS);
  try {
    checkRegular(fstatSync(descriptor));
    return descriptor;
  } catch (error) {
    closeSync(descriptor);
    throw error;
  }
}

/**
 * Reads all bytes of a regular file, links followed.
 * @param maxBytes - a longer file is refused, if possible before it is read
 * @throws {FileRefused} if it is not a regular file or has more bytes; also errors of the file system
 */
export async function readBounded(path: string, maxBytes: number): Promise<Buffer> {
  await using file = await openRegular(path);
  const reading = new Reading((await file.stat()).size, maxBytes);
  while (!reading.isDone) {
    const { rest, position } = reading;
    const { bytesRead } = await file.read(rest, 0, rest.length, position);
    reading.add(bytesRead);
  }
  return reading.bytes;
}

/** Reads like {@link readBounded}, but synchronously. */
export function readBoundedSync(path: string, maxBytes: number): Buffer {
  const descriptor = openRegularSync(path);
  try {
    const reading = new Reading(fstatSync(descriptor).size, maxBytes);
    while (!reading.isDone) {
      const { rest, position } = reading;
      reading.add(readSync(descriptor, rest, 0, rest.length, position));
    }
    return reading.bytes;
  } finally {
    closeSync(descriptor);
  }
}

/** Reads a file like {@link readBounded} as UTF-8 text; invalid bytes become U+FFFD. */
export async function readBoundedText(path: string, maxBytes: number): Promise<string> {
  return (await readBounded(path, maxBytes)).toString("utf8");
}

/** Reads like {@link readBoundedText}, but synchronously. */
export function readBoundedTextSync(path: string, maxBytes: number): string {
  return readBoundedSync(path, maxBytes).toString("utf8");
}

/** A buffer for the contents of a file. It grows if the file is longer than the system said, as files of /proc are. */
class Reading {
  readonly #maxBytes: number;
  #buffer: Buffer;
  #length = 0;
  #isDone = false;

  constructor(sizeBytes: number, maxBytes: number) {
    if (sizeBytes > maxBytes) throw tooLong(`${sizeBytes}`, maxBytes);
    this.#maxBytes = maxBytes;
    // One byte more, so that the read that finds the end of the file fits too.
    this.#buffer = Buffer.allocUnsafeSlow(sizeBytes + 1);
  }

  get isDone(): boolean {
    return this.#isDone;
  }

  get position(): number {
    return this.#length;
  }

  /** The free part of the buffer. */
  get rest(): Buffer {
    if (this.#length === this.#buffer.length) {
      const longer = Buffer.allocUnsafeSlow(Math.min(Math.max(4_096, 2 * this.#length), this.#maxBytes + 1));
      this.#buffer.copy(longer);
      this.#buffer = longer;
    }
    return this.#buffer.subarray(this.#length);
  }

  get bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }

  add(numBytes: number): void {
    this.#length += numBytes;
    this.#isDone = numBytes === 0;
    if (this.#length > this.#maxBytes) throw tooLong("more", this.#maxBytes);
  }
}

function checkRegular(stats: Stats): void {
  if (stats.isFile()) return;
  if (stats.isDirectory()) throw new FileRefused("a folder", "EISDIR");
  throw new FileRefused(stats.isFIFO() ? "a pipe, no regular file" : "a device, no regular file");
}

function tooLong(sizeBytes: string, maxBytes: number): FileRefused {
  return new FileRefused(`${sizeBytes} bytes, where such a file has at most ${maxBytes}`);
}
