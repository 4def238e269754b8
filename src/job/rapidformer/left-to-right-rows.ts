import { noGrad, scope, type Tensor, tensor } from "../../compute/tensor/index.ts";
import { type DocumentEnds, documentPlaces } from "../../library/data/index.ts";

/** Rows concatenated into one, for a causal model. int64. */
export type LeftToRightRow = {
  /** [1, B·T] */
  readonly inputIds: Tensor;
  /** [n + 1], start of each segment: each row, and with reset attention each document. The last entry is the end. */
  readonly segments: Tensor;
  /** [1, B·T], from 0 at the start of each row, or of each document if positions are reset. */
  readonly positionIds: Tensor;
  /** float32 [1, B·T], 0 at positions left out of the loss. */
  readonly lossMask: Tensor;
};

/**
 * Megatron's `get_ltor_masks_and_position_ids`, without a T × T mask for each row: documents that do not attend to each other are
 * segments of one row.
 * @param tokens - int64 [B, T]
 */
export function leftToRightRows(tokens: Tensor, ends: DocumentEnds): LeftToRightRow {
  const [numRows = 0, length = 0] = tokens.shape;
  const values = noGrad(() => scope(() => tokens.to("int32").contiguous().toTypedArray() as Int32Array));
  const rows = Array.from({ length: numRows }, (_, row) =>
    documentPlaces(values.subarray(row * length, (row + 1) * length), ends),
  );
  const bounds = rows.flatMap(({ begins }, row) => begins.map((begin) => row * length + begin));
  const positions = rows.flatMap((row) => Array.from(row.positions));
  const counts = rows.flatMap((row) => Array.from(row.lossMask));
  return {
    inputIds: tokens.reshape([1, -1]),
    segments: tensor([...bounds, numRows * length], { dtype: "int64" }),
    positionIds: tensor(positions, { dtype: "int64" }).unsqueeze(0),
    lossMask: tensor(counts).unsqueeze(0),
  };
}
