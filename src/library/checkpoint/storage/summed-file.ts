import { native } from "../../../compute/tensor/index.ts";
import { type Bytes, placeOf } from "./bytes.ts";
import type { FileSink, FileSums, ReadHow, StoredFile } from "./storage.ts";

/**
 * Bytes per checksum: damage is located, and parts are read, in complete chunks. Small, so that little more than the
 * wanted bytes is read; each costs four bytes of memory and about eleven of manifest.
 */
export const CHUNK_BYTES = 1 << 20;

const NO_SUMS = new Uint32Array(0);

/**
 * The CRC-32C (Castagnoli) of bytes, by a processor instruction where there is one.
 * @param before - checksum of the preceding bytes
 */
export function crc32c(bytes: Uint8Array, before = 0): number {
  return native().crc32c(bytes, before, false);
}

/** A new file, written by native threads directly from memory, with checksums computed on the way. */
export class SummedWriter implements FileSink {
  readonly #file: number;
  readonly #chunkBytes: number;
  #sizeBytes = 0;

  private constructor(file: number, chunkBytes: number) {
    this.#file = file;
    this.#chunkBytes = chunkBytes;
  }

  /**
   * Creates a file.
   * @param path - must not exist
   * @param sizeBytes - its size, where that is known: reserved at once
   * @throws {TroupeError} `FILE_WRITE`
   */
  static async create(path: string, chunkBytes = CHUNK_BYTES, sizeBytes = 0): Promise<SummedWriter> {
    return new SummedWriter(await native().createSummed(path, chunkBytes, sizeBytes), chunkBytes);
  }

  async append(bytes: Bytes): Promise<void> {
    const { memory, offsetBytes, sizeBytes } = placeOf(bytes);
    await native().appendSummed(this.#file, memory, offsetBytes, sizeBytes);
    this.#sizeBytes += sizeBytes;
  }

  async finish(): Promise<FileSums> {
    const crc32c = await native().finishSummed(this.#file);
    return { sizeBytes: this.#sizeBytes, chunkBytes: this.#chunkBytes, crc32c };
  }

  drop(): void {
    native().dropSummed(this.#file);
  }
}

/** A file of this machine, read by native threads directly into place. Owns a descriptor until disposed. */
export class SummedReader implements StoredFile {
  readonly path: string;
  readonly sizeBytes: number;
  readonly #file: number;

  private constructor(path: string, file: number, sizeBytes: number) {
    this.path = path;
    this.#file = file;
    this.sizeBytes = sizeBytes;
  }

  /** Opens a file. @throws {TroupeError} `FILE_READ` for anything but a regular file, symbolic links too */
  static async open(path: string): Promise<SummedReader> {
    const { file, sizeBytes } = await native().openSummed(path);
    return new SummedReader(path, file, sizeBytes);
  }

  read(stretches: Float64Array, into: Bytes, { sums, what }: ReadHow): Promise<number> {
    const { memory, offsetBytes } = placeOf(into);
    const placed =
      offsetBytes === 0 ? stretches : stretches.map((n, i) => (i % 3 === 1 ? n + offsetBytes : n));
    const chunkBytes = sums?.chunkBytes ?? CHUNK_BYTES;
    return native().readSummed(this.#file, placed, memory, chunkBytes, sums?.crc32c ?? NO_SUMS, what);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    native().dropSummed(this.#file);
  }
}
