import { TroupeError } from "../../../errors/index.ts";
import { numelOf } from "../../tensor/index.ts";

/**
 * The part of a parameter that a rank holds. The complete parameter is cut along `dim` into `parts` equal blocks (a fused
 * query-key-value matrix has three), and each block into `count` pieces, of which this rank holds number `index`. Plain data.
 */
export interface ParameterSplit {
  readonly dim: number;
  readonly index: number;
  readonly count: number;
  readonly parts: number;
  /** Shape of the complete parameter, as in a checkpoint. */
  readonly logicalShape: readonly number[];
}

/** Options of cutting a parameter; see {@link ParameterSplit}. */
export interface SplitOptions {
  readonly dim: number;
  readonly index: number;
  readonly count: number;
  /** Default: 1. */
  readonly parts?: number;
  /** Whether pieces may be rounded up: elements beyond the parameter are zero, and never stored. Default: false. */
  readonly pad?: boolean;
  /** Number of neighbours that stay together when pieces are rounded up. Default: 1. */
  readonly unit?: number;
}

/** A run of elements that is contiguous in the held piece and in the complete parameter, row-major. */
export interface LogicalRun {
  /** First element, in the piece. */
  readonly begin: number;
  /** First element, in the complete parameter. */
  readonly logicalBegin: number;
  readonly numel: number;
}

/**
 * Cuts a shape.
 * @param shape - shape of the complete parameter
 * @returns the split, and the shape of the piece
 * @throws {TroupeError} `PARAMETER_SPLIT` if the dim does not exist or cannot be divided
 */
export function cutShape(
  shape: readonly number[],
  options: SplitOptions,
): { readonly split: ParameterSplit; readonly shape: readonly number[] } {
  const { dim, index, count, parts = 1, pad = false, unit = 1 } = options;
  const size = shape[dim];
  const divides = size !== undefined && size % (parts * count) === 0;
  if (
    size === undefined ||
    index < 0 ||
    index >= count ||
    (!divides && !(pad && size % (parts * unit) === 0))
  )
    throw new TroupeError("PARAMETER_SPLIT", {
      where: "Parameter",
      expected: `dim ${dim} of shape [${shape}] to divide by ${parts} × ${count}`,
      got: `${size}`,
      hint: "choose another number of tensor-parallel ranks",
      fields: { shape, dim, index, count, parts },
    });
  const local = pad ? Math.ceil(size / parts / unit / count) * unit * parts : size / count;
  return {
    split: { dim, index, count, parts, logicalShape: [...shape] },
    shape: shape.map((complete, position) => (position === dim ? local : complete)),
  };
}

/**
 * Yields the runs of elements [begin, begin + numel) of a piece, with their places in the complete parameter, in order.
 * Padding is in no run.
 * @param shape - shape of the piece
 * @param split - undefined if the parameter is complete
 */
export function* logicalRuns(
  shape: readonly number[],
  split: ParameterSplit | undefined,
  begin: number,
  numel: number,
): Generator<LogicalRun> {
  if (split === undefined) {
    if (numel > 0) yield { begin, logicalBegin: begin, numel };
    return;
  }
  const { dim, index, parts, logicalShape } = split;
  const inner = numelOf(shape.slice(dim + 1));
  const held = (shape[dim] ?? 0) / parts;
  const complete = (logicalShape[dim] ?? 0) / parts;
  const stretch = held * inner;
  const used = Math.max(0, Math.min(held, complete - index * held)) * inner;
  const end = begin + numel;
  for (let place = Math.floor(begin / stretch); place * stretch < end; place++) {
    const from = Math.max(begin, place * stretch);
    const to = Math.min(end, place * stretch + used);
    if (from >= to) continue;
    const logicalStart = (place * complete + index * held) * inner;
    yield { begin: from, logicalBegin: logicalStart + from - place * stretch, numel: to - from };
  }
}
