import { TroupeError } from "../../../errors/index.ts";
import { type Bytes, sizeOf } from "../storage/bytes.ts";
import type { StoredFile } from "../storage/storage.ts";
import { type TensorEntry, tensorSizeBytes } from "./safetensors-header.ts";

/** Parts of a tensor to read, each to its own place. */
export interface TensorPart {
  readonly name: string;
  /** Three numbers each, in bytes: start in the tensor (row-major), start in the reader's memory, size. */
  readonly stretches: Float64Array;
}

/** A file of named tensors in any format, open for reading. Owns the file until `close`. */
export abstract class TensorFile implements AsyncDisposable {
  readonly path: string;
  /** The tensors by name. */
  abstract readonly tensors: ReadonlyMap<string, TensorEntry>;
  protected readonly file: StoredFile;
  /** Name of the format in messages. */
  readonly #format: string;

  constructor(file: StoredFile, format: string) {
    this.path = file.path;
    this.file = file;
    this.#format = format;
  }

  /** Returns a tensor's entry. @throws {TroupeError} `SAFETENSORS_TENSOR` for an unknown name */
  entry(name: string): TensorEntry {
    const entry = this.tensors.get(name);
    if (entry !== undefined) return entry;
    throw noTensor(this.#format, this.path, name, [...this.tensors.keys()]);
  }

  /**
   * Reads a tensor's bytes, row-major and little-endian.
   * @param into - memory of exactly the tensor's size. Default: new memory
   * @returns `into`
   */
  async read(name: string, into?: Uint8Array): Promise<Uint8Array> {
    const sizeBytes = this.sizeOf(name);
    const bytes = into ?? new Uint8Array(sizeBytes);
    if (bytes.length !== sizeBytes) throw this.wrongSize(name, sizeBytes, bytes.length);
    return this.readRange(name, 0, bytes);
  }

  /**
   * Reads part of a tensor's bytes, as much as `into` has room for.
   * @param offsetBytes - start of the part in the tensor
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
  abstract readStretches(name: string, stretches: Float64Array, into: Bytes): Promise<number>;

  /**
   * Reads parts of several tensors into one memory, each as with {@link readStretches}.
   * @returns number of bytes read from the file
   */
  abstract readParts(parts: readonly TensorPart[], into: Bytes): Promise<number>;

  async close(): Promise<void> {
    await this.file[Symbol.asyncDispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  protected sizeOf(name: string): number {
    const { dtype, shape } = this.entry(name);
    return tensorSizeBytes(dtype, shape) as number;
  }

  /**
   * Returns the stretches of a tensor's part, from the start of the file.
   * @param begin - the tensor's first byte in the file
   * @throws {TroupeError} `SAFETENSORS_TENSOR` for a stretch that is not within the tensor
   */
  protected inFile({ name, stretches }: TensorPart, begin: number): Float64Array {
    const sizeBytes = this.sizeOf(name);
    return stretches.map((value, index) => {
      if (index % 3 > 0) return value;
      const last = value + stretches[index + 2]!;
      if (value < 0 || last > sizeBytes) throw this.wrongSize(name, sizeBytes, last);
      return value + begin;
    });
  }

  protected wrongSize(name: string, expectedBytes: number, gotBytes: number): TroupeError {
    return new TroupeError("SAFETENSORS_TENSOR", {
      where: this.#format,
      expected: `memory for the ${expectedBytes} bytes of tensor ${JSON.stringify(name)} of ${this.path}`,
      got: `${gotBytes} bytes`,
      fields: { path: this.path, tensor: name, expectedBytes, gotBytes },
    });
  }
}

/** The error for a name that is not among a file's or a folder's tensors. */
export function noTensor(where: string, path: string, name: string, names: readonly string[]): TroupeError {
  return new TroupeError("SAFETENSORS_TENSOR", {
    where,
    expected: `tensor ${JSON.stringify(name)} in ${path}`,
    got: `${names.length} others`,
    hint: `${names.slice(0, 3).join(", ")}, ...`,
    fields: { path, tensor: name },
  });
}
