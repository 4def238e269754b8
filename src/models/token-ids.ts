import { TroupeError } from "../errors.ts";
import { shiftLabels } from "../nn/index.ts";
import { noGrad, scope, type Tensor } from "../tensor/index.ts";
import type { TextRequest } from "./language-model.ts";

/**
 * Checks token ids before any work is done with them.
 * @param ids - [B, T], int64
 * @throws `MODEL_INPUT` for another rank, dtype or length, or an id outside [0, vocabSize)
 */
export function checkTokenIds(where: string, ids: Tensor, vocabSize: number, maxPositions: number): void {
  const { shape, dtype } = ids;
  const length = shape[1] ?? 0;
  if (shape.length !== 2 || dtype !== "int64") {
    throw inputError(where, `token ids must be int64 [batch, positions]: ${dtype} [${shape}]`, {
      shape,
      dtype,
    });
  }
  if (length < 1 || length > maxPositions) {
    throw inputError(
      where,
      `positions must be between 1 and ${maxPositions}: ${length} (cut the text, or make n_positions larger)`,
      { length, maxPositions },
    );
  }
  // On a GPU reading the ids back would wait for it; its embedding kernel asserts instead.
  if (ids.device !== "cpu" || ids.numel === 0) return;
  const [lowest, highest] = extremes(ids);
  if (lowest < 0 || highest >= vocabSize) {
    throw inputError(
      where,
      `token ids must be in [0, ${vocabSize}): ${lowest < 0 ? lowest : highest} (is the text's vocabulary larger than the model's?)`,
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
    where,
    `labels and targets must be int64 [${ids.shape}], the shape of the ids: ${wanted.dtype} [${wanted.shape}]`,
    { expected: ids.shape, got: wanted.shape, dtype: wanted.dtype },
  );
}

function extremes(ids: Tensor): [lowest: number, highest: number] {
  return noGrad(() => scope(() => [ids.min().item(), ids.max().item()]));
}

function inputError(where: string, message: string, fields: Record<string, unknown>): TroupeError {
  return new TroupeError("MODEL_INPUT", `[${where}] ${message}`, { fields });
}
