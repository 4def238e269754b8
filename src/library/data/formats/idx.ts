import { closeSync, readSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { maxFileBytes, openRegular, openRegularSync, readBounded } from "../../../errors/untrusted/index.ts";
import { noteFile, refuseChanged } from "../noted-files.ts";
import { exampleError, unreadable } from "./refusal.ts";

/** An array of bytes with its shape, read row by row on demand. */
export interface IdxArray {
  readonly shape: readonly number[];
  /**
   * Reads `count` rows of the first dim, row-major.
   * @throws {TroupeError} `DATA_CHANGED` where the file has changed, `DATA_UNREADABLE`
   */
  rows(first: number, count: number): Uint8Array;
}

/** The type code of unsigned bytes, which pictures and labels have. */
const UNSIGNED_BYTES = 8;
/** The most times that gunzip may make a file larger. */
const MOST_GROWTH = 64;
/** The type code and the largest number of sizes. */
const MOST_HEADER_BYTES = 4 + 4 * 255;

/**
 * Opens a file in MNIST's format: big-endian sizes, then unsigned bytes, row-major. Rows stay on the disk until they
 * are requested, except in a gzipped file.
 * @throws {TroupeError} `DATA_UNREADABLE`, `DATA_EXAMPLE` for another format or a truncated file
 * @see https://yann.lecun.com/exdb/mnist
 */
export async function openIdx(path: string): Promise<IdxArray> {
  const { header, sizeBytes, plain } = await beginningOf(path).catch((cause: unknown) => {
    throw unreadable(path, cause);
  });
  const kind = header.length < 4 ? undefined : header.readUInt16BE(0) === 0 && header[2];
  if (kind !== UNSIGNED_BYTES) throw exampleError(path, "an idx file of unsigned bytes", "another format");
  const numDims = header[3] ?? 0;
  const begin = 4 + 4 * numDims;
  if (header.length < begin) throw exampleError(path, `${numDims} sizes`, `${header.length} bytes`);
  const shape = Array.from({ length: numDims }, (_, dim) => header.readUInt32BE(4 + 4 * dim));
  const size = shape.reduce((product, each) => product * each, 1);
  if (sizeBytes !== begin + size) throw exampleError(path, `${size} bytes of [${shape}]`, sizeBytes - begin);
  const rowBytes = size / Math.max(1, shape[0] ?? 1);
  return {
    shape,
    rows: (first, count) => {
      const [place, numBytes] = [begin + first * rowBytes, count * rowBytes];
      return plain?.subarray(place, place + numBytes) ?? readAt(path, place, numBytes);
    },
  };
}

/** Returns the file's first bytes and its size; all of it, unpacked, if it is gzipped. */
async function beginningOf(path: string): Promise<{ header: Buffer; sizeBytes: number; plain?: Buffer }> {
  noteFile(path);
  await using file = await openRegular(path);
  const { bytesRead, buffer } = await file.read(Buffer.alloc(MOST_HEADER_BYTES), 0, MOST_HEADER_BYTES, 0);
  const header = buffer.subarray(0, bytesRead);
  if (header[0] !== 0x1f || header[1] !== 0x8b) return { header, sizeBytes: (await file.stat()).size };
  const packed = await readBounded(path, maxFileBytes.numbers);
  // Pictures compress to about a quarter: data that grows much more is meant to fill the memory.
  const plain = gunzipSync(packed, { maxOutputLength: Math.max(1 << 26, MOST_GROWTH * packed.length) });
  return { header: plain.subarray(0, MOST_HEADER_BYTES), sizeBytes: plain.length, plain };
}

/** Opened for each read: holds no descriptor between two batches, and costs microseconds. */
function readAt(path: string, position: number, numBytes: number): Uint8Array {
  refuseChanged(path);
  let file: number | undefined;
  try {
    file = openRegularSync(path);
    const bytes = new Uint8Array(numBytes);
    if (readSync(file, bytes, 0, numBytes, position) !== numBytes) throw new Error("it became shorter");
    return bytes;
  } catch (cause) {
    throw unreadable(path, cause);
  } finally {
    if (file !== undefined) closeSync(file);
  }
}
