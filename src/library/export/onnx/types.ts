import {
  bytesIn,
  type DType,
  noGrad,
  scope,
  type TypedArray,
  tensor,
} from "../../../compute/tensor/index.ts";
import { exportError } from "../export-error.ts";

/** ONNX's numbers of element types (`TensorProto.DataType`). */
const codes: Readonly<Record<DType, number>> = {
  float32: 1,
  uint8: 2,
  int8: 3,
  int16: 5,
  int32: 6,
  int64: 7,
  bool: 9,
  float16: 10,
  float64: 11,
  bfloat16: 16,
};

/** ONNX's number of an element type. */
export function typeCode(dtype: DType): number {
  return codes[dtype];
}

/** An attribute of a node. */
export type Attribute =
  | { readonly int: number }
  | { readonly float: number }
  | { readonly string: string }
  | { readonly ints: readonly number[] }
  | { readonly graph: Branch };

/** A graph within a node, which reads the values of the graph around it. */
export type Branch = Pick<OnnxGraph, "nodes" | "outputs">;

/** A node of a graph. */
export interface OnnxNode {
  readonly operator: string;
  /** Names of values; an empty name leaves an optional input out. */
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly attributes: Readonly<Record<string, Attribute>>;
}

/** A constant tensor of a graph, whose bytes are read when it is written. */
export interface Initializer {
  readonly name: string;
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly sizeBytes: number;
  /** Row-major and little-endian. */
  read(): Promise<Uint8Array>;
}

/** An input or output of a graph. */
export interface OnnxValue {
  readonly name: string;
  readonly dtype: DType;
  /** A text is the name of a size that differs between calls. */
  readonly shape: readonly (number | string)[];
}

/** A complete graph. */
export interface OnnxGraph {
  readonly nodes: readonly OnnxNode[];
  readonly initializers: readonly Initializer[];
  readonly inputs: readonly OnnxValue[];
  readonly outputs: readonly OnnxValue[];
}

/** Returns the bytes of numbers as elements of a dtype. */
export function bytesOfNumbers(values: readonly number[] | TypedArray, dtype: DType): Uint8Array {
  if (dtype === "int64")
    return bytesIn(BigInt64Array.from(values as readonly number[], (value) => BigInt(value)));
  return scope(() =>
    noGrad(() =>
      bytesIn(
        tensor(Float64Array.from(values as readonly number[], Number))
          .to(dtype)
          .toTypedArray(),
      ),
    ),
  );
}

/** @throws {TroupeError} `EXPORT` */
export function unknownOperator(operator: string, module: string): Error {
  const hint = "replace it, or leave this module out";
  return exportError("operators that ONNX has", operator, { module, hint });
}
