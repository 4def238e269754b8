import { type DType, type NestedNumbers, type Tensor, tensor } from "../../../compute/tensor/index.ts";
import { isRecord } from "../../../errors/index.ts";
import { Refused } from "../../../job/http.ts";
import type { Batch, Rows, SampleRange } from "../../../library/data/index.ts";

const integers = ["int64", "int32", "uint8", "bool"] satisfies DType[];
/** Dtypes that a batch's tensors may have. */
const dtypes: readonly unknown[] = [...integers, "float32", "float64"] satisfies DType[];

/**
 * Makes a batch of JSON: a range of samples, or tensors by name. A tensor is nested lists of integers, which give int64, or
 * `{ dtype, values }`: JSON does not say whether 1 is an integer.
 * @returns tensors of the running scope
 * @throws {Refused} 400
 * @throws {TroupeError} `TENSOR_ARGUMENT` for lists of unequal lengths
 */
export function batchOf(given: unknown): Batch | SampleRange {
  if (!isRecord(given)) throw new Refused(400, 'expected "batch": { "NAME": [[…]], … }');
  if (typeof given.split === "string") return given as unknown as SampleRange;
  return Object.fromEntries(Object.entries(given).map(([name, value]) => [name, tensorOf(name, value)]));
}

function tensorOf(name: string, given: unknown): Tensor {
  const { dtype, values } = isRecord(given) ? given : { dtype: "int64", values: given };
  if (!dtypes.includes(dtype))
    throw new Refused(400, `expected the dtype of ${name} to be one of ${dtypes.join(", ")}`);
  const isInteger = (integers as readonly unknown[]).includes(dtype);
  const numbers = [values].flat(Number.POSITIVE_INFINITY);
  if (!numbers.every(isInteger ? Number.isSafeInteger : Number.isFinite)) {
    const hint = isInteger ? '; { "dtype": "float32", "values": [[…]] } takes others' : "";
    throw new Refused(
      400,
      `expected nested lists of ${isInteger ? "integers" : "finite numbers"} in ${name}${hint}`,
    );
  }
  return tensor(values as NestedNumbers, { dtype: dtype as DType });
}

/** A tensor for JSON: its elements in row-major order, those that are not finite as texts such as "NaN". */
interface JsonTensor {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly values: readonly (number | string)[];
}

/** Describes rows for an answer; 16-bit floats as float32. */
export function rowsAsJson(rows: Rows): Readonly<Record<string, JsonTensor>> {
  return Object.fromEntries(Object.entries(rows).map(([name, row]) => [name, asJson(row)]));
}

function asJson(row: Tensor): JsonTensor {
  const isShort = row.dtype === "bfloat16" || row.dtype === "float16";
  const read = isShort ? row.to("float32") : row;
  const values = Array.from(read.toTypedArray(), Number);
  return {
    dtype: read.dtype,
    shape: row.shape,
    values: values.map((value) => (Number.isFinite(value) ? value : String(value))),
  };
}
