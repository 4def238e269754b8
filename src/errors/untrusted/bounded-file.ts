import { closeSync, constants, fstatSync, openSync, readSync, type Stats } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";

const { O_NOCTTY, O_NONBLOCK, O_RDONLY } = constants;
/** Opening waits for no writer of a pipe, and takes over no terminal. */
const FLAGS = O_RDONLY | O_NONBLOCK | O_NOCTTY;

const MIB = 1 << 20;

/**
 * Largest size of each kind of file that is read into memory at once, in bytes: some ten times the largest that is known, so that a
 * file of another kind is refused before it is read.
 */
export const maxFileBytes = {
  /** A word or two: the name of the latest step, a commit, a token. */
  word: 4_096,
  /** Options, names of one's own, keys, scripts. */
  settings: MIB,
  /** A model's or an adapter's config.json: most of it the names of classes. */
  config: 4 * MIB,
  /** Which file holds which tensor: some 100 bytes each. */
  index: 32 * MIB,
  /** A vocabulary and its merges: 35 MB are known. */
  tokenizer: 128 * MIB,
  /** A text in one string: V8 has none of 512 MiB. */
  text: 511 * MIB,
  picture: 64 * MIB,
  /** An hour of a CD's sound is 600 MB. */
  sound: 2_000 * MIB,
  /** Numbers in binary form, of which most of the file consists. */
  numbers: 2_000 * MIB,
} as const;

/** Why {@link openRegular} and {@link readBounded} refuse a file; `fileFailure` gives the message as the words after "got". */
class FileRefused extends Error {
  /** As of a system's error, for the reasons that have words of their own. */
  readonly code?: string;

  constructor(message: string, code?: string) {
    super(message);
    if (code !== undefined) this.code = code;
  }
}

/**
 * Opens a regular file for reading, links followed, without ever waiting: a pipe, a socket or a device is refused. The caller owns
 * the handle.
 * @throws {FileRefused} for what is no regular file; what the system throws
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

/** {@link openRegular} at once. @returns the descriptor, which the caller owns */
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
 * All bytes of a regular file, links followed.
 * @param maxBytes - a longer one is refused, before it is read where the system knows its size
 * @throws {FileRefused} for what is no regular file or has more bytes; what the system throws
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

/** {@link readBounded} at once. */
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

/** {@link readBounded} as text in UTF-8; what is none becomes U+FFFD. */
export async function readBoundedText(path: string, maxBytes: number): Promise<string> {
  return (await readBounded(path, maxBytes)).toString("utf8");
}

/** {@link readBoundedText} at once. */
export function readBoundedTextSync(path: string, maxBytes: number): string {
  return readBoundedSync(path, maxBytes).toString("utf8");
}

/** Memory that a file is read into. It grows where the file is longer than the system said, as files of /proc are. */
class Reading {
  readonly #maxBytes: number;
  #buffer: Buffer;
  #length = 0;
  #isDone = false;

  constructor(sizeBytes: number, maxBytes: number) {
    if (sizeBytes > maxBytes) throw tooLong(`${sizeBytes}`, maxBytes);
    this.#maxBytes = maxBytes;
    // One byte more, so that the read that finds the end needs no other memory.
    this.#buffer = Buffer.allocUnsafeSlow(sizeBytes + 1);
  }

  get isDone(): boolean {
    return this.#isDone;
  }

  get position(): number {
    return this.#length;
  }

  /** The free part of the memory. */
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
