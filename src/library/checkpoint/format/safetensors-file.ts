import { TroupeError } from "../../../errors/index.ts";
import { type Bytes, sizeOf } from "../storage/bytes.ts";
import { type FileSums, oneStretch, type StoredFile } from "../storage/storage.ts";
import { SummedReader } from "../storage/summed-file.ts";
import { corrupt, parseHeader, type SafetensorsHeader, type TensorEntry } from "./safetensors-header.ts";
import type { TensorFile, TensorPart } from "./tensor-file.ts";

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
export class SafetensorsFile implements TensorFile {
  readonly path: string;
  readonly metadata: ReadonlyMap<string, string>;
  /** The tensors by name, in the order of the header. */
  readonly tensors: ReadonlyMap<string, TensorEntry>;
  /** First byte of the data in the file; a tensor is at this plus its `begin`. */
  readonly dataOffset: number;
  readonly #file: StoredFile;
  readonly #sums: FileSums | undefined;

  private constructor(header: SafetensorsHeader, dataOffset: number, file: StoredFile, sums?: FileSums) {
    this.path = file.path;
    this.metadata = header.metadata;
    this.tensors = header.tensors;
    this.dataOffset = dataOffset;
    this.#file = file;
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

  /**
   * Returns the header's entry for a tensor.
   * @throws {TroupeError} `SAFETENSORS_TENSOR` for an unknown name
   */
  entry(name: string): TensorEntry {
    const entry = this.tensors.get(name);
    if (entry !== undefined) return entry;
    throw new TroupeError("SAFETENSORS_TENSOR", {
      where: "safetensors",
      expected: `tensor ${JSON.stringify(name)} in ${this.path}`,
      got: `${this.tensors.size} others`,
      hint: `${[...this.tensors.keys()].slice(0, 3).join(", ")}, ...`,
      fields: { path: this.path, tensor: name },
    });
  }

  /**
   * Reads a tensor's bytes, row-major and little-endian.
   * @param into - memory of exactly the tensor's size; new memory by default
   * @returns `into`
   */
  async read(name: string, into?: Uint8Array): Promise<Uint8Array> {
    const { begin, end } = this.entry(name);
    const bytes = into ?? new Uint8Array(end - begin);
    if (bytes.length !== end - begin) throw this.#wrongSize(name, end - begin, bytes.length);
    return this.readRange(name, 0, bytes);
  }

  /**
   * Reads part of a tensor's bytes.
   * @param offsetBytes - start of the part in the tensor
   * @param into - memory of the part's size
   * @returns `into`
   */
  async readRange<T extends Bytes>(name: string, offsetBytes: number, into: T): Promise<T> {
    await this.readStretches(name, Float64Array.of(offsetBytes, 0, sizeOf(into)), into);
    return into;
  }

  /**
   * Reads parts of a tensor's bytes, each to its own place.
   * @param stretches - three numbers each, in bytes: start in the tensor, start in `into`, size
   * @returns number of bytes read from the file
   */
  async readStretches(name: string, stretches: Float64Array, into: Bytes): Promise<number> {
    const what = `tensor ${JSON.stringify(name)}`;
    return this.#file.read(this.#inFile({ name, stretches }), into, { sums: this.#sums, what });
  }

  /**
   * Reads parts of several tensors into one memory, each as with {@link readStretches}; nearby parts of the file are
   * read together.
   * @returns number of bytes read from the file
   */
  async readParts(parts: readonly TensorPart[], into: Bytes): Promise<number> {
    const placed = parts.map((part) => this.#inFile(part));
    const all = new Float64Array(placed.reduce((length, each) => length + each.length, 0));
    let next = 0;
    for (const each of placed) {
      all.set(each, next);
      next += each.length;
    }
    try {
      return await this.#file.read(all, into, { sums: this.#sums, what: `${parts.length} tensors` });
    } catch (error) {
      // Reading one by one shows which tensor fails.
      for (const { name, stretches } of parts) await this.readStretches(name, stretches, into);
      throw error;
    }
  }

  /** Closes the file. */
  async close(): Promise<void> {
    await this.#file[Symbol.asyncDispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #inFile({ name, stretches }: TensorPart): Float64Array {
    const { begin, end } = this.entry(name);
    const inFile = Float64Array.from(stretches);
    for (let i = 0; i < stretches.length; i += 3) {
      const last = stretches[i]! + stretches[i + 2]!;
      if (stretches[i]! < 0 || last > end - begin) throw this.#wrongSize(name, end - begin, last);
      inFile[i] = stretches[i]! + this.dataOffset + begin;
    }
    return inFile;
  }

  #wrongSize(name: string, expectedBytes: number, gotBytes: number): TroupeError {
    return new TroupeError("SAFETENSORS_TENSOR", {
      where: "safetensors",
      expected: `memory for the ${expectedBytes} bytes of tensor ${JSON.stringify(name)} of ${this.path}`,
      got: `${gotBytes} bytes`,
      fields: { path: this.path, tensor: name, expectedBytes, gotBytes },
    });
  }
}

function headerLength(prefix: Uint8Array, path: string, fileBytes: number, maxBytes: number): number {
  if (fileBytes < 8) throw corrupt(path, "at least 8 bytes", `${fileBytes}, a truncated file`);
  const length = new DataView(prefix.buffer).getBigUint64(0, true);
  const cap = Math.min(maxBytes, formatMaxHeaderBytes);
  if (length > BigInt(cap)) throw corrupt(path, `a header of at most ${cap} bytes`, String(length));
  if (Number(length) > fileBytes - 8) {
    throw corrupt(
      path,
      `a header of ${length} bytes`,
      `${fileBytes - 8} bytes after its length, a truncated file`,
    );
  }
  return Number(length);
}

function decodeHeader(bytes: Uint8Array, path: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw corrupt(path, "a header in UTF-8", "other bytes");
  }
}
