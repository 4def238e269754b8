import type { Bytes } from "../storage/bytes.ts";
import { type FileSums, oneStretch, type StoredFile } from "../storage/storage.ts";
import { SummedReader } from "../storage/summed-file.ts";
import { corrupt, parseHeader, type SafetensorsHeader, type TensorEntry } from "./safetensors-header.ts";
import { TensorFile, type TensorPart } from "./tensor-file.ts";

/** Limits checked before anything is allocated for a file. */
export interface OpenOptions {
  /** Largest header, in bytes. Default: 16 MiB, enough for some 100,000 tensors; the format allows 10^8. */
  readonly maxHeaderBytes?: number;
}

const formatMaxHeaderBytes = 100_000_000;

/**
 * A safetensors file, open for reading. Its header is checked to describe the data exactly: every byte belongs to one
 * tensor. Owns the file until `close`.
 */
export class SafetensorsFile extends TensorFile {
  readonly metadata: ReadonlyMap<string, string>;
  /** The tensors by name, in the order of the header. */
  readonly tensors: ReadonlyMap<string, TensorEntry>;
  /** First byte of the data in the file; a tensor is at this plus its `begin`. */
  readonly dataOffset: number;
  readonly #sums: FileSums | undefined;

  private constructor(header: SafetensorsHeader, dataOffset: number, file: StoredFile, sums?: FileSums) {
    super(file, "safetensors");
    this.metadata = header.metadata;
    this.tensors = header.tensors;
    this.dataOffset = dataOffset;
    this.#sums = sums;
  }

  /**
   * Opens a file and checks its header; the data is read on demand.
   * @throws {TroupeError} `SAFETENSORS_INVALID` or `JSON_INVALID` for a file that is damaged or no safetensors file;
   * the file system's error where it cannot be read
   */
  static async open(path: string, options: OpenOptions = {}): Promise<SafetensorsFile> {
    return SafetensorsFile.from(await SummedReader.open(path), options);
  }

  /**
   * Reads the header of an open file, and takes ownership of it, also on an error.
   * @param options.sums - checksums of its bytes: the header's are checked now, a tensor's when it is read
   * @throws {TroupeError} `CHECKPOINT_DAMAGED` for other bytes
   */
  static async from(
    file: StoredFile,
    options: OpenOptions & { readonly sums?: FileSums } = {},
  ): Promise<SafetensorsFile> {
    try {
      const { path, sizeBytes } = file;
      const { sums } = options;
      const prefix = new Uint8Array(Math.min(8, sizeBytes));
      await file.read(oneStretch(0, prefix.length), prefix, { sums, what: "the header" });
      const headerBytes = headerLength(prefix, path, sizeBytes, options.maxHeaderBytes ?? 1 << 24);
      const bytes = new Uint8Array(headerBytes);
      await file.read(oneStretch(8, headerBytes), bytes, { sums, what: "the header" });
      const header = parseHeader(decodeHeader(bytes, path), sizeBytes - 8 - headerBytes, path);
      return new SafetensorsFile(header, 8 + headerBytes, file, sums);
    } catch (error) {
      await file[Symbol.asyncDispose]();
      throw error;
    }
  }

  override async readStretches(name: string, stretches: Float64Array, into: Bytes): Promise<number> {
    const what = `tensor ${JSON.stringify(name)}`;
    return this.file.read(this.#inFile({ name, stretches }), into, { sums: this.#sums, what });
  }

  /** Nearby parts of the file are read together. */
  override async readParts(parts: readonly TensorPart[], into: Bytes): Promise<number> {
    const placed = parts.map((part) => this.#inFile(part));
    const all = new Float64Array(placed.reduce((length, each) => length + each.length, 0));
    let next = 0;
    for (const each of placed) {
      all.set(each, next);
      next += each.length;
    }
    try {
      return await this.file.read(all, into, { sums: this.#sums, what: `${parts.length} tensors` });
    } catch (error) {
      // Reading one by one shows which tensor fails.
      for (const { name, stretches } of parts) await this.readStretches(name, stretches, into);
      throw error;
    }
  }

  #inFile(part: TensorPart): Float64Array {
    return this.inFile(part, this.dataOffset + this.entry(part.name).begin);
  }
}

function headerLength(prefix: Uint8Array, path: string, fileBytes: number, maxBytes: number): number {
  if (fileBytes < 8) throw corrupt(path, "at least 8 bytes", `${fileBytes}, a truncated file`);
  const length = new DataView(prefix.buffer).getBigUint64(0, true);
  const cap = Math.min(maxBytes, formatMaxHeaderBytes);
  if (length > BigInt(cap)) throw corrupt(path, `a header of at most ${cap} bytes`, String(length));
  if (Number(length) > fileBytes - 8)
    throw corrupt(
      path,
      `a header of ${length} bytes`,
      `${fileBytes - 8} bytes after its length, a truncated file`,
    );
  return Number(length);
}

function decodeHeader(bytes: Uint8Array, path: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw corrupt(path, "a header in UTF-8", "other bytes");
  }
}
