import { TroupeError } from "../../../errors/index.ts";
import { full, noGrad, ops, scope, Tensor, tensor } from "../../tensor/index.ts";

// n samples, T positions of the one row that they share.

/**
 * Samples side by side in one row, in place of a row each: attention stays within a sample, and positions are counted from
 * its beginning. Plain data, so that it goes through blocks as it is.
 */
export interface PackedRow {
  /** Where each begins, and where the last ends: n + 1 numbers. What stands behind is padding. */
  readonly bounds: readonly number[];
  /** T. */
  readonly length: number;
}

/**
 * @param bounds - int64 [n + 1], as a batch has them
 * @param inputIds - [1, T]
 * @throws {TroupeError} `MODEL_INPUT` unless they rise from 0 to at most T, in one row
 */
export function packedRow(bounds: Tensor, inputIds: Tensor): PackedRow {
  const numbers = noGrad(() => scope(() => [...(bounds.to("float64").toTypedArray() as Float64Array)]));
  const [rows = 0, length = 0] = inputIds.shape;
  const rises = numbers.every((bound, index) => index === 0 || bound > (numbers[index - 1] ?? 0));
  const fits = rows === 1 && numbers.length > 1 && numbers[0] === 0 && (numbers.at(-1) ?? 0) <= length;
  if (rises && fits) return { bounds: numbers, length };
  throw new TroupeError("MODEL_INPUT", {
    where: "packed row",
    expected: `bounds that rise from 0 to at most ${length}, in one row`,
    got: `${numbers.slice(0, 8).join(", ")} in ${rows} rows`,
  });
}

/** Positions of each, all that stand in the row: of the padding behind too, where there is some. */
export function lengthsOf({ bounds, length }: PackedRow): number[] {
  const lengths = bounds.slice(1).map((end, index) => end - (bounds[index] ?? 0));
  const rest = length - (bounds.at(-1) ?? 0);
  return rest > 0 ? [...lengths, rest] : lengths;
}

/** 0, 1, 2, … from the beginning of each: int64 [1, T]. */
export function positionsIn(row: PackedRow): Tensor {
  const positions = lengthsOf(row).flatMap((length) => Array.from({ length }, (_, index) => index));
  return tensor(positions, { dtype: "int64" }).unsqueeze(0);
}

/** The first position of each: [1, T, D] → [n, D]. */
export function firstPositions(hidden: Tensor, { bounds }: PackedRow): Tensor {
  return hidden.select(0, 0).indexSelect(0, tensor(bounds.slice(0, -1), { dtype: "int64" }));
}

/**
 * Each sample as a row of its own: [1, T, C] → [n, L, C], L positions of the longest.
 * @param fill - what stands behind the shorter ones
 */
export function rowsOfTheirOwn(x: Tensor, row: PackedRow, fill: number): Tensor {
  const { bounds } = row;
  const [, length = 0, width = 0] = x.shape;
  const lengths = bounds.slice(1).map((end, index) => end - (bounds[index] ?? 0));
  const longest = Math.max(...lengths);
  const places = lengths.flatMap((own, sample) =>
    Array.from({ length: longest }, (_, place) => (place < own ? (bounds[sample] ?? 0) + place : length)),
  );
  const padded = ops.cat([x.select(0, 0), full([1, width], fill, { dtype: x.dtype })], 0);
  return padded.indexSelect(0, tensor(places, { dtype: "int64" })).view([lengths.length, longest, width]);
}

/** Whether so many queries are all positions of a row, or one of each sample. */
export function isQueriedBy({ bounds, length }: PackedRow, numQueries: number): boolean {
  return numQueries === length || numQueries === bounds.length - 1;
}

/** What attention is told of either: a mask of padding, or who shares a row. */
export function seenBy(mask: Tensor | PackedRow | undefined): {
  readonly mask?: Tensor;
  readonly packed?: PackedRow;
} {
  if (mask === undefined) return {};
  return mask instanceof Tensor ? { mask } : { packed: mask };
}

/**
 * Attention within each segment by itself: what a mask would hide is never computed, so that a row costs what its samples
 * would cost alone, without a mask in memory.
 * @param heads - q [1, H, T, K], or [1, H, n, K] of one query a sample; k and v [1, G, T, K]
 * @param attend - of one sample's q, k and v
 * @returns as q
 */
export function withinSamples(
  row: PackedRow,
  heads: readonly [q: Tensor, k: Tensor, v: Tensor],
  attend: (q: Tensor, k: Tensor, v: Tensor) => Tensor,
): Tensor {
  const [queries, ...seen] = heads;
  const lengths = lengthsOf(row);
  // Cut at once: the gradient of each cut by itself would be as large as the row.
  const [k, v] = seen.map((each) => each.split(lengths, 2)) as [Tensor[], Tensor[]];
  const q = queries.split(queries.shape[2] === row.length ? lengths : 1, 2);
  const parts = q.map((own, index) => attend(own, k[index] as Tensor, v[index] as Tensor).transpose(1, 2));
  return ops.cat(parts, 1).transpose(1, 2); // laid out as projections read it
}
