import type { Bytes } from "../storage/bytes.ts";
import type { TensorFacts } from "./safetensors-header.ts";

/** Parts of a tensor that are to be read, each to a place of its own. */
export interface TensorPart {
  readonly name: string;
  /** Three numbers each, in bytes: where it begins in the tensor, row-major, where in the reader's memory, its size. */
  readonly stretches: Float64Array;
}

/** A file of named tensors, open for reading, whatever its form. Owns the file until `close`. */
export interface TensorFile extends AsyncDisposable {
  readonly path: string;
  readonly tensors: ReadonlyMap<string, TensorFacts>;
  /** @throws {TroupeError} `SAFETENSORS_TENSOR` when the file has none of that name */
  entry(name: string): TensorFacts;
  /** The bytes of a tensor, row-major and little-endian. @param into - of exactly its size; new memory by default */
  read(name: string, into?: Uint8Array): Promise<Uint8Array>;
  /** Part of the bytes of a tensor, as much as `into` takes. @returns `into` */
  readRange<T extends Bytes>(name: string, offsetBytes: number, into: T): Promise<T>;
  /** @returns how many bytes of the file were read */
  readStretches(name: string, stretches: Float64Array, into: Bytes): Promise<number>;
  /** @returns how many bytes of the file were read */
  readParts(parts: readonly TensorPart[], into: Bytes): Promise<number>;
  close(): Promise<void>;
}
