import { numelOf, scope, type Tensor } from "../../compute/tensor/index.ts";
import type { Rows } from "../../library/data/index.ts";

/** Each sample's predictions of one name, as numbers. */
export function numbersOf(rows: Rows, name: string): number[][] {
  const { shape } = rows[name] as Tensor;
  const [numRows = 0, ...rest] = shape;
  const width = numelOf(rest);
  const values = scope(
    () => (rows[name] as Tensor).to("float32").contiguous().toTypedArray() as Float32Array,
  );
  return Array.from({ length: numRows }, (_, row) => [...values.subarray(row * width, (row + 1) * width)]);
}

/** Sums the predictions of one name over all samples, by column. */
export function sumsOf(rows: Rows, name: string): number[] {
  const numbers = numbersOf(rows, name);
  return (numbers[0] ?? []).map((_, column) => numbers.reduce((sum, row) => sum + (row[column] ?? 0), 0));
}

/** Index of the largest value, the first of equal ones. */
export function indexOfMax(values: ArrayLike<number>): number {
  let best = 0;
  for (let index = 1; index < values.length; index++)
    if ((values[index] ?? 0) > (values[best] ?? 0)) best = index;
  return best;
}
