import { readFile } from "node:fs/promises";
import { gunzipSync } from "node:zlib";
import { exampleError, unreadable } from "./refusal.ts";

/** An array of bytes with its shape. */
export interface IdxArray {
  readonly shape: readonly number[];
  readonly data: Uint8Array;
}

/** Of unsigned bytes, the only kind that pictures and labels come in. */
const UNSIGNED_BYTES = 8;

/**
 * A file as MNIST is published: big-endian sizes, then unsigned bytes, row-major; gunzipped where it is gzipped.
 * @throws {TroupeError} `DATA_UNREADABLE`, `DATA_EXAMPLE` for another format or a file that is cut short
 * @see https://yann.lecun.com/exdb/mnist
 */
export async function readIdx(path: string): Promise<IdxArray> {
  const bytes = await readFile(path).catch((cause: unknown) => {
    throw unreadable(path, cause);
  });
  const plain = bytes[0] === 0x1f && bytes[1] === 0x8b ? gunzipSync(bytes) : bytes;
  const kind = plain.length < 4 ? undefined : plain.readUInt16BE(0) === 0 && plain[2];
  if (kind !== UNSIGNED_BYTES) throw exampleError(path, "an idx file of unsigned bytes", "another format");
  const numDims = plain[3] ?? 0;
  const begin = 4 + 4 * numDims;
  if (plain.length < begin) throw exampleError(path, `${numDims} sizes`, `${plain.length} bytes`);
  const shape = Array.from({ length: numDims }, (_, dim) => plain.readUInt32BE(4 + 4 * dim));
  const size = shape.reduce((product, each) => product * each, 1);
  const data = plain.subarray(begin, begin + size);
  if (data.length !== size || plain.length !== begin + size)
    throw exampleError(path, `${size} bytes of [${shape}]`, plain.length - begin);
  return { shape, data };
}
