import { TroupeError } from "../../errors/index.ts";

/** A JavaScript array of a tensor's elements. 16-bit floats are raw bits in a Uint16Array. */
export type TypedArray =
  | Float32Array
  | Float64Array
  | BigInt64Array
  | Int32Array
  | Int16Array
  | Int8Array
  | Uint8Array
  | Uint8ClampedArray
  | Uint16Array;

interface DTypeFacts {
  /** libtorch's number of the dtype (c10::ScalarType), part of its stable interface. */
  readonly code: number;
  readonly itemBytes: number;
  readonly array: {
    new (length: number): TypedArray;
    new (buffer: ArrayBufferLike, byteOffset: number, length: number): TypedArray;
  };
}

const facts = {
  float32: { code: 6, itemBytes: 4, array: Float32Array },
  float64: { code: 7, itemBytes: 8, array: Float64Array },
  bfloat16: { code: 15, itemBytes: 2, array: Uint16Array },
  float16: { code: 5, itemBytes: 2, array: Uint16Array },
  int64: { code: 4, itemBytes: 8, array: BigInt64Array },
  int32: { code: 3, itemBytes: 4, array: Int32Array },
  int16: { code: 2, itemBytes: 2, array: Int16Array },
  int8: { code: 1, itemBytes: 1, array: Int8Array },
  uint8: { code: 0, itemBytes: 1, array: Uint8Array },
  bool: { code: 11, itemBytes: 1, array: Uint8Array },
} as const satisfies Record<string, DTypeFacts>;

/** The type of a tensor's elements. */
export type DType = keyof typeof facts;

/** All dtypes, floats first. */
export const dtypes = Object.keys(facts) as readonly DType[];

/** Returns the size of one element in bytes. */
export function itemBytes(dtype: DType): number {
  return factsOf(dtype).itemBytes;
}

/** Returns libtorch's number of a dtype. @throws {TroupeError} `TENSOR_DTYPE` on an unknown name */
export function dtypeCode(dtype: DType): number {
  return factsOf(dtype).code;
}

/** Returns the dtype of a libtorch number. @throws {TroupeError} `TENSOR_DTYPE` for one that Troupe does not use */
export function dtypeOfCode(code: number): DType {
  const found = dtypes.find((dtype) => facts[dtype].code === code);
  if (found === undefined) throw unknownDType(`libtorch's number ${code}`);
  return found;
}

/** Makes an array for elements of a dtype. */
export function arrayFor(dtype: DType, length: number): TypedArray {
  return new (factsOf(dtype).array)(length);
}

/** Makes an array for elements of a dtype over existing memory. */
export function viewFor(
  dtype: DType,
  buffer: ArrayBufferLike,
  byteOffset: number,
  length: number,
): TypedArray {
  return new (factsOf(dtype).array)(buffer, byteOffset, length);
}

/** The bytes of an array, which share its memory. */
export function bytesIn({ buffer, byteOffset, byteLength }: TypedArray): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

/** Returns the dtype that a typed array implies; undefined for a Uint16Array. */
export function dtypeOfArray(data: TypedArray): DType | undefined {
  if (data instanceof Uint16Array) return undefined;
  if (data instanceof Uint8ClampedArray) return "uint8";
  return dtypes.find((dtype) => data instanceof facts[dtype].array);
}

function factsOf(dtype: DType): DTypeFacts {
  const found: DTypeFacts | undefined = facts[dtype];
  if (found === undefined) throw unknownDType(String(dtype));
  return found;
}

function unknownDType(came: string): TroupeError {
  return new TroupeError("TENSOR_DTYPE", {
    where: "tensor",
    expected: "a dtype",
    got: came,
    hint: `one of ${dtypes.join(", ")}`,
    fields: { dtype: came },
  });
}
