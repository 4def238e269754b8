import * as nn from "../../compute/nn/index.ts";
import { noGrad, scope, type Tensor } from "../../compute/tensor/index.ts";
import { TroupeError } from "../../errors/index.ts";
import type { TextPlaces, TextRequest } from "./language-model.ts";

/**
 * Checks token ids.
 * @param ids - [B, T], int64
 * @param length - positions of the longest packed sample; default T
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
  if (shape.length !== 2 || dtype !== "int64")
    throw inputError(where, "token ids of int64 [batch, positions]", `${dtype} [${shape}]`, { shape, dtype });
  if (length < 1 || length > maxPositions) {
    const hint = "cut the text, or make n_positions larger";
    const expected = `from 1 to ${maxPositions} positions`;
    throw inputError(where, expected, `${length}`, { length, maxPositions }, hint);
  }
  // Reading ids back from a GPU would wait for it; its embedding kernel asserts instead.
  if (ids.device !== "cpu" || ids.numel === 0) return;
  const [lowest, highest] = extremes(ids);
  if (lowest >= 0 && highest < vocabSize) return;
  const fields = { lowest, highest, vocabSize };
  const hint = "is the text's vocabulary larger than the model's?";
  throw inputError(where, `token ids in [0, ${vocabSize})`, `${lowest < 0 ? lowest : highest}`, fields, hint);
}

/** Masks and positions of rows of ids [B, T]. */
export interface PlacedIds {
  /** Number of positions: T, or that of the longest packed text. */
  readonly length: number;
  /** bool [B, 1, 1, T], false at padding; or the packed texts. Undefined if nothing is masked. */
  readonly mask: Tensor | nn.PackedRow | undefined;
  /** int64 [1, T], unless they count from 0 without a cache. */
  readonly positions: Tensor | undefined;
}

/** @throws `MODEL_INPUT` for a mask with segments, or segments or positions that do not fit one row */
export function placesIn(
  where: string,
  ids: Tensor,
  { attentionMask, segments, positionIds }: TextPlaces,
): PlacedIds {
  const [rows = 0, length = 0] = ids.shape;
  if (segments === undefined && positionIds === undefined)
    return { length, mask: attentionMask && nn.paddingMask(attentionMask), positions: undefined };
  const fits = positionIds === undefined || (positionIds.dtype === "int64" && rows === 1);
  if (attentionMask !== undefined || !fits || (positionIds && positionIds.shape.join() !== ids.shape.join()))
    throw inputError(
      where,
      `segments and positions, int64 [1, ${length}], of one row, without a mask`,
      attentionMask ? "a mask with them" : `ids [${ids.shape}], positions [${positionIds?.shape}]`,
      { shape: ids.shape },
      "packed texts need no padding",
    );
  const row = segments && nn.packedRow(segments, ids);
  if (positionIds !== undefined)
    return { length: extremes(positionIds)[1] + 1, mask: row, positions: positionIds };
  const own = row as nn.PackedRow;
  return { length: Math.max(...nn.lengthsOf(own)), mask: own, positions: nn.positionsIn(own) };
}

/**
 * The target of each position, labels shifted; undefined if logits are requested.
 * @throws `MODEL_INPUT` unless the targets are int64 of the inputs' shape
 */
export function targetsOf(where: string, ids: Tensor, { labels, targets }: TextRequest): Tensor | undefined {
  const wanted = targets ?? (labels && nn.shiftLabels(labels));
  if (wanted === undefined) return undefined;
  if (wanted.dtype === "int64" && wanted.shape.join() === ids.shape.join()) return wanted;
  const { shape, dtype } = wanted;
  const expected = `labels and targets of int64 [${ids.shape}], the shape of the ids`;
  throw inputError(where, expected, `${dtype} [${shape}]`, { expected: ids.shape, got: shape, dtype });
}

function extremes(ids: Tensor): [lowest: number, highest: number] {
  return noGrad(() => scope(() => [ids.min().item(), ids.max().item()]));
}

/** The error for a batch that a model cannot take. */
export function inputError(
  where: string,
  expected: string,
  got: string,
  fields: Record<string, unknown>,
  hint?: string,
): TroupeError {
  return new TroupeError("MODEL_INPUT", { where, expected, got, hint, fields });
}
