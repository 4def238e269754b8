import type { Bytes } from "../storage/bytes.ts";
import type { TensorFacts } from "./safetensors-header.ts";

/** Parts of a tensor to read, each to its own place. */
export interface TensorPart {
  readonly name: string;
  /** Three numbers each, in bytes: start in the tensor (row-major), start in the reader's memory, size. */
  readonly stretches: Float64Array;
}

/** A file of named tensors in any format, open for reading. Owns the file until `close`. */
export interface TensorFile extends AsyncDisposable {
  readonly path: string;
  readonly tensors: ReadonlyMap<string, TensorFacts>;
  /**
   * Returns a tensor's dtype and shape.
   * @throws {TroupeError} `SAFETENSORS_TENSOR` for an unknown name
   */
  entry(name: string): TensorFacts;
  /**
   * Reads a tensor's bytes, row-major and little-endian.
   * @param into - of exactly its size; new memory by default
   */
  read(name: string, into?: Uint8Array): Promise<Uint8Array>;
  /**
   * Reads part of a tensor's bytes, as much as `into` has room for.
   * @returns `into`
   */
  readRange<T extends Bytes>(name: string, offsetBytes: number, into: T): Promise<T>;
  /**
   * Reads parts of a tensor, see {@link TensorPart.stretches}.
   * @returns number of bytes read from the file
   */
  readStretches(name: string, stretches: Float64Array, into: Bytes): Promise<number>;
  /**
   * Reads parts of several tensors.
   * @returns number of bytes read from the file
   */
  readParts(parts: readonly TensorPart[], into: Bytes): Promise<number>;
  close(): Promise<void>;
}
