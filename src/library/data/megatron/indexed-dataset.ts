import { closeSync, readSync } from "node:fs";
import { fileErrors } from "../../../errors/index.ts";
import {
  fileStatus,
  maxFileBytes,
  openRegularSync,
  readBoundedSync,
} from "../../../errors/untrusted/index.ts";
import { noteFile } from "../noted-files.ts";

/** Type of a token in a `.bin` file. */
export type IndexedDType = "uint8" | "int8" | "int16" | "int32" | "int64" | "uint16";

/** By Megatron's type code in the index. 6 and 7 are floats, in an order that differs between versions. */
export const indexedDTypes: Readonly<Record<number, IndexedDType>> = {
  1: "uint8",
  2: "int8",
  3: "int16",
  4: "int32",
  5: "int64",
  8: "uint16",
};

const arrays = {
  uint8: Uint8Array,
  int8: Int8Array,
  int16: Int16Array,
  int32: Int32Array,
  int64: BigInt64Array,
  uint16: Uint16Array,
} as const;

/** Bytes per token. */
export function bytesOf(dtype: IndexedDType): number {
  return arrays[dtype].BYTES_PER_ELEMENT;
}

/** Format of an index: `mmap` is Megatron's current one, `cached` the older one, also called lazy. */
export type IndexedFormat = "mmap" | "cached";

export const mmapMagic = Buffer.from("MMIDIDX\0\0", "latin1");
export const cachedMagic = Buffer.from("TNTIDX\0\0", "latin1");

/** The content of an index. */
interface Index {
  readonly format: IndexedFormat;
  readonly dtype: IndexedDType;
  /** Tokens per sequence. */
  readonly lengths: Int32Array;
  /** Start of each sequence in the `.bin` file, in bytes. */
  readonly pointers: Float64Array;
  /** First sequence of each document, and the number of sequences at the end. */
  readonly documents: Float64Array;
}

/**
 * Sequences of tokens in Megatron's `PREFIX.idx` and `PREFIX.bin`. The index is in memory as plain arrays, since the
 * file's are not aligned; tokens are read on demand.
 */
export class IndexedDataset implements Disposable {
  readonly prefix: string;
  readonly format: IndexedFormat;
  readonly dtype: IndexedDType;
  readonly lengths: Int32Array;
  readonly documents: Float64Array;
  readonly #pointers: Float64Array;
  readonly #file: number;

  private constructor(prefix: string, index: Index, file: number) {
    this.prefix = prefix;
    this.format = index.format;
    this.dtype = index.dtype;
    this.lengths = index.lengths;
    this.documents = index.documents;
    this.#pointers = index.pointers;
    this.#file = file;
  }

  /**
   * Opens a dataset of either format, recognized by its first bytes (`--data-impl infer`).
   * @param prefix - the path without `.idx` or `.bin`
   * @throws {TroupeError} `DATA_INDEX` where a file is missing or damaged, or they contradict each other
   */
  static open(prefix: string): IndexedDataset {
    for (const ending of ["idx", "bin"]) noteFile(`${prefix}.${ending}`);
    const index = readIndex(`${prefix}.idx`);
    checkTokens(`${prefix}.bin`, index);
    return new IndexedDataset(prefix, index, openRegularSync(`${prefix}.bin`));
  }

  /** Number of sequences. */
  get length(): number {
    return this.lengths.length;
  }

  /**
   * Reads tokens of a sequence.
   * @param offset - index of the first
   * @param length - Default: all that follow
   */
  get(sequence: number, offset = 0, length = (this.lengths[sequence] ?? 0) - offset): Int32Array {
    const available = (this.lengths[sequence] ?? -1) - offset;
    if (!(offset >= 0 && length >= 0 && length <= available))
      throw new RangeError(`no ${length} tokens from ${offset} on in sequence ${sequence} of ${this.prefix}`);
    const size = bytesOf(this.dtype);
    const bytes = new Uint8Array(length * size);
    const position = (this.#pointers[sequence] as number) + offset * size;
    for (let read = 0; read < bytes.length; ) {
      const count = readSync(this.#file, bytes, read, bytes.length - read, position + read);
      if (count === 0) throw damaged(`${this.prefix}.bin`, "the tokens of its index", "its end");
      read += count;
    }
    const tokens = new arrays[this.dtype](bytes.buffer);
    return tokens instanceof BigInt64Array ? Int32Array.from(tokens, Number) : Int32Array.from(tokens);
  }

  [Symbol.dispose](): void {
    closeSync(this.#file);
  }
}

function readIndex(path: string): Index {
  let bytes: Buffer;
  try {
    bytes = readBoundedSync(path, maxFileBytes.numbers);
  } catch (cause) {
    throw damaged(path, "an index file", (cause as Error).message);
  }
  if (bytes.subarray(0, mmapMagic.length).equals(mmapMagic)) return readMmap(path, bytes);
  if (bytes.subarray(0, cachedMagic.length).equals(cachedMagic)) return readCached(path, bytes);
  throw damaged(path, "MMIDIDX or TNTIDX at its beginning", JSON.stringify(bytes.toString("latin1", 0, 9)));
}

function readMmap(path: string, bytes: Buffer): Index {
  const headerBytes = 34;
  if (bytes.length < headerBytes) throw damaged(path, "a header of 34 bytes", `${bytes.length} bytes`);
  checkVersion(path, bytes.readBigUInt64LE(9));
  const dtype = dtypeOf(path, bytes.readUInt8(17));
  const numSequences = Number(bytes.readBigUInt64LE(18));
  const numBounds = Number(bytes.readBigUInt64LE(26));
  const needed = headerBytes + 12 * numSequences + 8 * numBounds;
  // A multimodal index has one more byte per sequence.
  if (bytes.length !== needed && bytes.length !== needed + numSequences)
    throw damaged(path, `${needed} bytes for ${numSequences} sequences`, `${bytes.length}`);
  const pointersAt = headerBytes + 4 * numSequences;
  const index: Index = {
    format: "mmap",
    dtype,
    lengths: new Int32Array(copyOf(bytes, headerBytes, 4 * numSequences)),
    pointers: wholeNumbers(bytes, pointersAt, numSequences),
    documents: wholeNumbers(bytes, pointersAt + 8 * numSequences, numBounds),
  };
  checkDocuments(path, index);
  return index;
}

function readCached(path: string, bytes: Buffer): Index {
  const headerBytes = 56;
  if (bytes.length < headerBytes) throw damaged(path, "a header of 56 bytes", `${bytes.length} bytes`);
  const field = (at: number): number => Number(bytes.readBigUInt64LE(at));
  checkVersion(path, bytes.readBigUInt64LE(8));
  const dtype = dtypeOf(path, field(16));
  const [elementBytes, numSequences, numSizes, numBounds] = [field(24), field(32), field(40), field(48)];
  const needed = headerBytes + 16 * (numSequences + 1) + 8 * numSizes + 8 * numBounds;
  if (elementBytes !== bytesOf(dtype) || numSizes !== numSequences || bytes.length !== needed)
    throw damaged(path, `${needed} bytes for ${numSequences} sequences`, `${bytes.length}`);
  const offsetsAt = headerBytes + 8 * (numSequences + 1);
  const sizesAt = offsetsAt + 8 * (numSequences + 1);
  const index: Index = {
    format: "cached",
    dtype,
    lengths: Int32Array.from(wholeNumbers(bytes, sizesAt, numSizes)),
    pointers: wholeNumbers(bytes, offsetsAt, numSequences).map((offset) => offset * elementBytes),
    documents: wholeNumbers(bytes, sizesAt + 8 * numSizes, numBounds),
  };
  checkDocuments(path, index);
  return index;
}

function checkVersion(path: string, version: bigint): void {
  if (version !== 1n) throw damaged(path, "version 1", `${version}`);
}

function dtypeOf(path: string, code: number): IndexedDType {
  const dtype = indexedDTypes[code];
  if (dtype !== undefined) return dtype;
  throw damaged(path, `tokens of a code in ${Object.keys(indexedDTypes).join(", ")}`, `${code}`);
}

function checkDocuments(path: string, { documents, lengths }: Index): void {
  const isRising = documents.every((bound, d) => d === 0 || bound >= (documents[d - 1] as number));
  if (documents[0] === 0 && documents.at(-1) === lengths.length && isRising) return;
  throw damaged(path, `documents that end with sequence ${lengths.length}`, `${documents.at(-1)}`);
}

function checkTokens(path: string, { lengths, pointers, dtype }: Index): void {
  const status = fileStatus(path);
  if (status === undefined) throw damaged(path, "the tokens next to their index", "no such file");
  const size = Number(status.size);
  let end = 0;
  for (let i = 0; i < lengths.length; i++) {
    const [begin, length] = [pointers[i] as number, lengths[i] as number];
    if (length < 0 || begin !== end)
      throw damaged(path, `sequence ${i} at byte ${end}, after the one before`, `${begin}`);
    end = begin + length * bytesOf(dtype);
  }
  if (end !== size) throw damaged(path, `${end} bytes, as its index says`, `${size}`);
}

function wholeNumbers(bytes: Buffer, at: number, count: number): Float64Array {
  return Float64Array.from(new BigInt64Array(copyOf(bytes, at, 8 * count)), Number);
}

/** Copies an array of an index, since it is not aligned in the file. */
function copyOf(bytes: Buffer, at: number, length: number): ArrayBuffer {
  return new Uint8Array(bytes.subarray(at, at + length)).buffer;
}

const damaged = fileErrors("DATA_INDEX", "indexed dataset", "write it again");
