import { randomUUID } from "node:crypto";
import { type FileHandle, mkdir, open, rename, rm } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { crc32 } from "node:zlib";

/** Size and CRC-32 of a file, by which its bytes are recognised. */
export interface FileFacts {
  readonly sizeBytes: number;
  readonly crc32: number;
}

/** A new file that is written from its beginning to its end. */
export interface FileWriter {
  /** Appends `bytes`, which may be changed again once the promise is fulfilled. */
  append(bytes: Uint8Array): Promise<void>;
}

/** What the names of files that are not yet in place begin with. */
export const savingPrefix = ".saving-";

const readChunkBytes = 1 << 22;

/**
 * Writes a new file and waits until the disk has its bytes.
 * @param path - where no file is yet
 * @throws what the file system reports, also for the synchronisation, which is never tried twice: after a failed one
 * the system may have dropped the bytes
 */
export async function writeDurably(
  path: string,
  write: (file: FileWriter) => Promise<void>,
): Promise<FileFacts> {
  const file = await open(path, "wx");
  try {
    let sizeBytes = 0;
    let crc = 0;
    const append = async (bytes: Uint8Array) => {
      await writeFully(file, bytes, sizeBytes);
      crc = crc32(bytes, crc);
      sizeBytes += bytes.length;
    };
    await write({ append });
    await file.sync();
    return { sizeBytes, crc32: crc };
  } finally {
    await file.close();
  }
}

/** Puts a file in the place of another, if there is one: a reader sees the old or the new, also after a power cut. */
export async function replaceDurably(
  path: string,
  write: (file: FileWriter) => Promise<void>,
): Promise<FileFacts> {
  const temporary = join(dirname(path), `${savingPrefix}${basename(path)}-${randomUUID()}`);
  try {
    const facts = await writeDurably(temporary, write);
    await rename(temporary, path);
    await syncPath(dirname(path));
    return facts;
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
  const first = await mkdir(absolute, { recursive: true });
  if (first === undefined) return;
  for (let made = absolute; made.length >= first.length; made = dirname(made)) await syncPath(dirname(made));
}

/** Reads a file once to learn its size and CRC-32. */
export async function measureFile(path: string): Promise<FileFacts> {
  const file = await open(path, "r");
  try {
    const bytes = new Uint8Array(readChunkBytes);
    let sizeBytes = 0;
    let crc = 0;
    while (true) {
      const { bytesRead } = await file.read(bytes);
      if (bytesRead === 0) return { sizeBytes, crc32: crc };
      crc = crc32(bytes.subarray(0, bytesRead), crc);
      sizeBytes += bytesRead;
    }
  } finally {
    await file.close();
  }
}

/** The system may write less than it was asked to, for instance just before the disk is full. */
async function writeFully(file: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  let numWritten = 0;
  while (numWritten < bytes.length) {
    const { bytesWritten } = await file.write(
      bytes,
      numWritten,
      bytes.length - numWritten,
      position + numWritten,
    );
    numWritten += bytesWritten;
  }
}
