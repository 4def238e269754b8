import { rankOf } from "./classification.ts";

/**
 * The share of rows whose own column is among the `k` nearest to them.
 * @param rows - N vectors, as are `columns`; vectors at the same place form a pair
 */
export function recallAt(
  k: number,
  rows: readonly ArrayLike<number>[],
  columns: readonly ArrayLike<number>[],
): number {
  const found = rows.filter(
    (row, place) =>
      rankOf(
        columns.map((column) => dot(row, column)),
        place,
      ) < k,
  );
  return found.length / Math.max(1, rows.length);
}

function dot(left: ArrayLike<number>, right: ArrayLike<number>): number {
  let sum = 0;
  for (let index = 0; index < left.length; index++) sum += (left[index] ?? 0) * (right[index] ?? 0);
  return sum;
}
