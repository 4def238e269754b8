import { Tensor } from "../../compute/tensor/index.ts";
import { TroupeError } from "../../errors/index.ts";
import { type Box, type SafetensorsDType, toSafetensorsDType } from "../../library/checkpoint/index.ts";
import type { StagedSave, TensorGroup } from "./staged-save.ts";

/** The bytes of a tensor, or of a slice of it: row-major and little-endian. */
export interface RawTensor {
  /** Dtype in safetensors' spelling: `F32`, `BF16`, `I64`, … */
  readonly dtype: SafetensorsDType;
  /** Shape of the complete tensor. */
  readonly shape: readonly number[];
  readonly bytes: Uint8Array;
  /** The part of the tensor in `bytes`. Default: all of it. */
  readonly slice?: Box;
}

// biome-ignore format: a list
const arrayDTypes = {
  Float32Array: "F32", Float64Array: "F64", Float16Array: "F16", BigInt64Array: "I64",
  BigUint64Array: "U64", Int32Array: "I32", Uint32Array: "U32", Int16Array: "I16", Uint16Array: "U16",
  Int8Array: "I8", Uint8Array: "U8", Uint8ClampedArray: "U8",
} as const satisfies Readonly<Record<string, SafetensorsDType>>;

/** A tensor, an array of numbers (1-D, with its kind as dtype), raw bytes, or the slices of one tensor. */
export type GivenTensor = Tensor | NodeJS.TypedArray | RawTensor | readonly RawTensor[];

/** Copies tensors into a save. @throws {TroupeError} `CHECKPOINT_SLICE` for what does not fit; `CHECKPOINT_STAGING` */
export function stageAll(
  save: StagedSave,
  group: TensorGroup,
  tensors: Readonly<Record<string, GivenTensor>>,
): void {
  for (const [name, given] of Object.entries(tensors)) stage(save, group, name, given);
}

function stage(save: StagedSave, group: TensorGroup, name: string, given: GivenTensor): void {
  if (given instanceof Tensor) {
    const facts = { group, name, dtype: toSafetensorsDType(given.dtype), shape: given.shape };
    save.fill(facts, (buffer, byteOffset) => given.copyInto(buffer, byteOffset));
    return;
  }
  if (ArrayBuffer.isView(given)) {
    const dtype = arrayDTypes[given.constructor.name as keyof typeof arrayDTypes];
    if (dtype === undefined) throw noTensor(name, given.constructor.name);
    const bytes = new Uint8Array(given.buffer, given.byteOffset, given.byteLength);
    save.put({ group, name, dtype, shape: [given.length] }, bytes);
    return;
  }
  const parts: readonly RawTensor[] = Array.isArray(given) ? given : [given as RawTensor];
  for (const part of parts) {
    if (!Array.isArray(part?.shape) || !(part.bytes instanceof Uint8Array)) throw noTensor(name, typeof part);
    const { dtype, shape, bytes, slice } = part;
    save.put({ group, name, dtype, shape: [...shape] }, bytes, slice);
  }
}

function noTensor(name: string, got: string): TroupeError {
  return new TroupeError("CHECKPOINT_SLICE", {
    where: "checkpoint service",
    expected: `${JSON.stringify(name)} to be a Tensor, a typed array, or { dtype, shape, bytes }`,
    got,
    hint: "see GivenTensor",
    fields: { tensor: name },
  });
}
