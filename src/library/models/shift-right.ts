import { IGNORE_INDEX } from "../../compute/nn/index.ts";
import { full, ops, type Tensor } from "../../compute/tensor/index.ts";

/**
 * Makes a decoder's input from its labels: a start token, then all labels but the last. Ignored labels become padding.
 * @param labels - [B, T], int64
 * @returns [B, T], int64
 */
export function shiftRight(labels: Tensor, startToken: number, paddingToken: number): Tensor {
  const [batch = 0, length = 0] = labels.shape;
  const start = full([batch, Math.min(length, 1)], startToken, { dtype: "int64" });
  const shifted = ops.cat([start, labels.narrow(1, 0, Math.max(0, length - 1))], 1); // [B, T]
  return shifted.maskedFill(shifted.eq(IGNORE_INDEX), paddingToken);
}
