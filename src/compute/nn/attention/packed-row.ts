import { TroupeError } from "../../../errors/index.ts";
import { full, noGrad, ops, scope, Tensor, tensor } from "../../tensor/index.ts";

// n samples, T positions of the one row that they share.

/**
 * Samples packed into one row instead of a row each. Attention stays within a sample, and positions are counted from its
 * beginning. Plain data, so that it passes through blocks unchanged.
 */
export interface PackedRow {
  /** The beginning of each sample and the end of the last: n + 1 numbers. Positions after it are padding. */
  readonly bounds: readonly number[];
  /** T, the number of positions. */
  readonly length: number;
}

/**
 * Makes a {@link PackedRow} from the tensors of a batch.
 * @param bounds - int64 [n + 1]
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

/** Returns the number of positions of each sample, and of the padding if there is any. */
export function lengthsOf({ bounds, length }: PackedRow): number[] {
  const lengths = bounds.slice(1).map((end, index) => end - (bounds[index] ?? 0));
  const rest = length - (bounds.at(-1) ?? 0);
  return rest > 0 ? [...lengths, rest] : lengths;
}

/** Returns positions 0, 1, 2, … from the beginning of each sample: int64 [1, T]. */
export function positionsIn(row: PackedRow): Tensor {
  const positions = lengthsOf(row).flatMap((length) => Array.from({ length }, (_, index) => index));
  return tensor(positions, { dtype: "int64" }).unsqueeze(0);
}

/** Selects the first position of each sample: [1, T, D] → [n, D]. */
export function firstPositions(hidden: Tensor, { bounds }: PackedRow): Tensor {
  return hidden.select(0, 0).indexSelect(0, tensor(bounds.slice(0, -1), { dtype: "int64" }));
}

/**
 * Unpacks the samples into rows of their own: [1, T, C] → [n, L, C], L the length of the longest.
 * @param fill - padding value after shorter samples
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

/** Whether there are as many queries as positions in the row, or as samples. */
export function isQueriedBy({ bounds, length }: PackedRow, numQueries: number): boolean {
  return numQueries === length || numQueries === bounds.length - 1;
}

/** Returns the options of attention for a padding mask or a packed row. */
export function seenBy(mask: Tensor | PackedRow | undefined): {
  readonly mask?: Tensor;
  readonly packed?: PackedRow;
} {
  if (mask === undefined) return {};
  return mask instanceof Tensor ? { mask } : { packed: mask };
}

/**
 * Computes attention within each sample separately. Nothing that a mask would hide is computed, so that a row costs as much
 * as its samples would alone, without a mask in memory.
 * @param heads - q [1, H, T, K], or [1, H, n, K] with one query per sample; k and v [1, G, T, K]
 * @param attend - computes attention of one sample's q, k and v
 * @returns [1, H, T, K] or [1, H, n, K], like q
 */
export function withinSamples(
  row: PackedRow,
  heads: readonly [q: Tensor, k: Tensor, v: Tensor],
  attend: (q: Tensor, k: Tensor, v: Tensor) => Tensor,
): Tensor {
  const [queries, ...seen] = heads;
  const lengths = lengthsOf(row);
  // Split in one operation: the gradient of each separate slice would be as large as the row.
  const [k, v] = seen.map((each) => each.split(lengths, 2)) as [Tensor[], Tensor[]];
  const q = queries.split(queries.shape[2] === row.length ? lengths : 1, 2);
  const parts = q.map((own, index) => attend(own, k[index] as Tensor, v[index] as Tensor).transpose(1, 2));
  return ops.cat(parts, 1).transpose(1, 2); // in the layout that projections read
}
