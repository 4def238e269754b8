import { crossEntropy } from "../../../compute/nn/index.ts";
import { ops, type Tensor } from "../../../compute/tensor/index.ts";
import type { ProblemType } from "../config-fields.ts";
import { inputError } from "../token-ids.ts";

/**
 * The loss of one prediction per row: a class (cross entropy), several classes at once (binary cross entropies), or numbers (squared
 * error). Without a problem type a single output is a regression, int64 labels are classes, and others are several classes at once.
 * @param logits - [B, C]
 * @param labels - [B], or [B, C] for several at once and for C numbers
 * @returns float32 scalar, a mean
 * @throws {TroupeError} `MODEL_INPUT` for labels of another number of rows
 */
export function rowLoss(logits: Tensor, labels: Tensor, problemType: ProblemType): Tensor {
  const [numRows = 0, numClasses = 0] = logits.shape;
  const isClass = labels.dtype === "int64";
  const problem =
    problemType ??
    (numClasses === 1
      ? "regression"
      : isClass
        ? "single_label_classification"
        : "multi_label_classification");
  const perRow = problem === "single_label_classification" ? 1 : numClasses;
  if (labels.numel !== numRows * perRow)
    throw inputError(
      "classifier",
      `labels of [${perRow === 1 ? numRows : `${numRows}, ${perRow}`}] for a ${problem}`,
      `[${labels.shape}]`,
      { problem, shape: labels.shape },
    );
  if (problem === "single_label_classification") return crossEntropy(logits, labels.reshape([-1]));
  const numbers = labels.to("float32").reshape(logits.shape);
  const given = logits.to("float32");
  return problem === "regression"
    ? ops.mseLoss(given, numbers)
    : ops.binaryCrossEntropyWithLogits(given, numbers);
}

/**
 * The loss of an answer's start and end: the mean of both cross entropies. Positions beyond the row are left out.
 * @param starts - logits [B, T], as `ends`
 * @param startPositions - int64 [B], as `endPositions`
 * @returns float32 scalar
 */
export function spanLoss(starts: Tensor, ends: Tensor, startPositions: Tensor, endPositions: Tensor): Tensor {
  const length = starts.shape[1] ?? 0;
  const loss = (logits: Tensor, positions: Tensor) =>
    crossEntropy(logits, positions.reshape([-1]).clamp(0, length), { ignoreIndex: length });
  return loss(starts, startPositions).add(loss(ends, endPositions)).mul(0.5);
}
