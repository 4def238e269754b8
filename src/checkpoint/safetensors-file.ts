import { type FileHandle, open } from "node:fs/promises";
import { TroupeError } from "../errors.ts";
import { corrupt, parseHeader, type SafetensorsHeader, type TensorEntry } from "./safetensors-header.ts";

/** Bounds that are checked before anything is allocated for a file. */
export interface OpenOptions {
  /** Largest header, in bytes: 16 MiB by default, which holds some 100,000 tensors; the format's own bound is 10^8. */
  readonly maxHeaderBytes?: number;
}

const formatMaxHeaderBytes = 100_000_000;
const maxReadBytes = 1 << 30;

/**
 * A safetensors file, open for reading. Its header is proven to describe its data exactly, so every byte of the data
 * belongs to one tensor. Owns a file descriptor until `close`.
 */
export class SafetensorsFile {
  readonly path: string;
  readonly metadata: ReadonlyMap<string, string>;
  /** The tensors by name, in the order of the header. */
  readonly tensors: ReadonlyMap<string, TensorEntry>;
  /** Where the data begins in the file, in bytes; a tensor lies at this plus its `begin`. */
  readonly dataOffset: number;
  readonly #file: FileHandle;

  private constructor(path: string, header: SafetensorsHeader, dataOffset: number, file: FileHandle) {
    this.path = path;
    this.metadata = header.metadata;
    this.tensors = header.tensors;
    this.dataOffset = dataOffset;
    this.#file = file;
  }

  /**
   * Opens a file and checks its header; the data is read on demand.
   * @throws {TroupeError} `SAFETENSORS_INVALID` or `JSON_INVALID` for a file that is damaged or no safetensors file;
   * what the file system throws when it cannot be read
   */
  static async open(path: string, options: OpenOptions = {}): Promise<SafetensorsFile> {
    const file = await open(path, "r");
    try {
      const { size } = await file.stat();
      const headerBytes = await headerLength(file, path, size, options.maxHeaderBytes ?? 1 << 24);
      const bytes = await readFully(file, path, 8, new Uint8Array(headerBytes));
      const header = parseHeader(decodeHeader(bytes, path), size - 8 - headerBytes, path);
      return new SafetensorsFile(path, header, 8 + headerBytes, file);
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  /**
   * What the tensor `name` is.
   * @throws {TroupeError} `SAFETENSORS_TENSOR` when the file has none of that name
   */
  entry(name: string): TensorEntry {
    const entry = this.tensors.get(name);
    if (entry !== undefined) return entry;
    throw new TroupeError(
      "SAFETENSORS_TENSOR",
      `[safetensors] expected tensor ${JSON.stringify(name)} in ${this.path}: got ${this.tensors.size} others ` +
        `(${[...this.tensors.keys()].slice(0, 3).join(", ")}, ...)`,
      { fields: { path: this.path, tensor: name } },
    );
  }

  /**
   * The bytes of a tensor, row-major and little-endian.
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
   * Part of the bytes of a tensor.
   * @param offsetBytes - where the part begins in the tensor
   * @param into - takes the part; its length is the part's
   * @returns `into`
   */
  async readRange(name: string, offsetBytes: number, into: Uint8Array): Promise<Uint8Array> {
    const { begin, end } = this.entry(name);
    if (offsetBytes < 0 || offsetBytes + into.length > end - begin) {
      throw this.#wrongSize(name, end - begin, offsetBytes + into.length);
    }
    return readFully(this.#file, this.path, this.dataOffset + begin + offsetBytes, into);
  }

  /** Gives the file descriptor back. */
  async close(): Promise<void> {
    await this.#file.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #wrongSize(name: string, expectedBytes: number, gotBytes: number): TroupeError {
    return new TroupeError(
      "SAFETENSORS_TENSOR",
      `[safetensors] expected to read the ${expectedBytes} bytes of tensor ${JSON.stringify(name)} of ${this.path}: ` +
        `got memory for ${gotBytes}`,
      { fields: { path: this.path, tensor: name, expectedBytes, gotBytes } },
    );
  }
}

async function headerLength(
  file: FileHandle,
  path: string,
  fileBytes: number,
  maxBytes: number,
): Promise<number> {
  if (fileBytes < 8) throw corrupt(path, "at least 8 bytes", `${fileBytes}, a truncated file`);
  const prefix = await readFully(file, path, 0, new Uint8Array(8));
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

/** Reads until `into` is full: one read gives at most 2 GiB, and less where the system likes. */
async function readFully(
  file: FileHandle,
  path: string,
  position: number,
  into: Uint8Array,
): Promise<Uint8Array> {
  let numRead = 0;
  while (numRead < into.length) {
    const length = Math.min(into.length - numRead, maxReadBytes);
    const { bytesRead } = await file.read(into, numRead, length, position + numRead);
    if (bytesRead === 0)
      throw corrupt(path, `${into.length} bytes at ${position}`, `${numRead}: it has shrunk`);
    numRead += bytesRead;
  }
  return into;
}
