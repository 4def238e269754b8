import { type ErrorSentence, TroupeError } from "../errors.ts";
import { shiftLabels } from "../nn/index.ts";
import { noGrad, scope, type Tensor } from "../tensor/index.ts";
import type { TextRequest } from "./language-model.ts";

/**
 * Checks token ids before any work is done with them.
 * @param ids - [B, T], int64
 * @param length - positions of the longest sample, where several share a row; T unless told otherwise
 * @throws `MODEL_INPUT` for another rank, dtype or length, or an id outside [0, vocabSize)
 */
export function checkTokenIds(
  where: string,
  ids: Tensor,
  vocabSize: number,
  maxPositions: number,
  length = ids.shape[1] ?? 0,
): void {
  const { shape, dtype } = ids;
  if (shape.length !== 2 || dtype !== "int64") {
    throw inputError(
      { where, expected: "token ids of int64 [batch, positions]", got: `${dtype} [${shape}]` },
      {
        shape,
        dtype,
      },
    );
  }
  if (length < 1 || length > maxPositions) {
    throw inputError(
      {
        where,
        expected: `from 1 to ${maxPositions} positions`,
        got: `${length}`,
        hint: "cut the text, or make n_positions larger",
      },
      { length, maxPositions },
    );
  }
  // On a GPU reading the ids back would wait for it; its embedding kernel asserts instead.
  if (ids.device !== "cpu" || ids.numel === 0) return;
  const [lowest, highest] = extremes(ids);
  if (lowest < 0 || highest >= vocabSize) {
    throw inputError(
      {
        where,
        expected: `token ids in [0, ${vocabSize})`,
        got: `${lowest < 0 ? lowest : highest}`,
        hint: "is the text's vocabulary larger than the model's?",
      },
      { lowest, highest, vocabSize },
    );
  }
}

/**
 * What each position is asked for, labels shifted to it; none where logits are wanted.
 * @throws `MODEL_INPUT` unless the targets are int64 of the inputs' shape
 */
export function targetsOf(where: string, ids: Tensor, { labels, targets }: TextRequest): Tensor | undefined {
  const wanted = targets ?? (labels && shiftLabels(labels));
  if (wanted === undefined) return undefined;
  if (wanted.dtype === "int64" && wanted.shape.join() === ids.shape.join()) return wanted;
  throw inputError(
    {
      where,
      expected: `labels and targets of int64 [${ids.shape}], the shape of the ids`,
      got: `${wanted.dtype} [${wanted.shape}]`,
    },
    { expected: ids.shape, got: wanted.shape, dtype: wanted.dtype },
  );
}

function extremes(ids: Tensor): [lowest: number, highest: number] {
  return noGrad(() => scope(() => [ids.min().item(), ids.max().item()]));
}

function inputError(says: ErrorSentence, fields: Record<string, unknown>): TroupeError {
  return new TroupeError("MODEL_INPUT", says, { fields });
}
