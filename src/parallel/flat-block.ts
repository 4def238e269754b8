import type { ParameterSpec } from "../nn/index.ts";
import type { ZeroLevel } from "./zero.ts";

/**
 * Every parameter starts on a multiple of this many elements, so that views of the flat buffer are aligned for
 * every dtype (256 bytes in bfloat16, 512 in float32) and a kernel never straddles two parameters in one vector.
 */
export const PARAMETER_ALIGNMENT = 128;

/**
 * A slice is a multiple of this many elements: the chunk of `troupe::chunk_square_sums`. Chunks never cross a slice,
 * so the gradient norm is summed in the same order, hence to the same bits, for every number of ranks.
 */
export const SLICE_ALIGNMENT = 1024;

/** Where one parameter lies in its block's flat buffer. */
export interface FlatParameter extends ParameterSpec {
  /** In elements. */
  readonly numel: number;
  /** In elements from the start of the flat buffer. */
  readonly offset: number;
}

/** The parameters that are gathered, reduced and updated together: one flat buffer, one slice a rank. Plain data. */
export interface FlatBlock {
  /** Position in forward order of first registration; block 0 is the root: what lies outside every block. */
  readonly index: number;
  readonly name: string;
  readonly zero: ZeroLevel;
  readonly parameters: readonly FlatParameter[];
  /** Elements of the padded flat buffer: `sliceNumel` × ranks. */
  readonly numel: number;
  readonly sliceNumel: number;
}

/** Half-open range of elements of a flat buffer. */
export interface Range {
  readonly begin: number;
  readonly end: number;
}

const roundUp = (value: number, multiple: number) => Math.ceil(value / multiple) * multiple;

/**
 * Lays parameters out one after the other, aligned, and pads the whole to a multiple of `numRanks` slices.
 * @param specs - in the order of the module's `namedParameters()`
 * @returns plain data; the same on every rank
 */
export function layoutBlock(
  index: number,
  name: string,
  zero: ZeroLevel,
  specs: readonly ParameterSpec[],
  numRanks: number,
): FlatBlock {
  let offset = 0;
  const parameters = specs.map((spec): FlatParameter => {
    const numel = spec.shape.reduce((product, size) => product * size, 1);
    const parameter = { ...spec, numel, offset };
    offset = roundUp(offset + numel, PARAMETER_ALIGNMENT);
    return parameter;
  });
  const sliceNumel = roundUp(Math.ceil(offset / numRanks), SLICE_ALIGNMENT);
  return { index, name, zero, parameters, numel: sliceNumel * numRanks, sliceNumel };
}

/** @returns the elements of the flat buffer that `rank` owns when the block is split */
export function sliceOf(block: FlatBlock, rank: number): Range {
  return { begin: rank * block.sliceNumel, end: (rank + 1) * block.sliceNumel };
}

/** One parameter's share of a range of the flat buffer. */
export interface Piece {
  readonly parameter: FlatParameter;
  /** First element, within the parameter. */
  readonly parameterBegin: number;
  /** First element, within the range. */
  readonly rangeBegin: number;
  readonly numel: number;
}

/** @returns the pieces of parameters that lie in `range`, in order; padding belongs to none */
export function piecesIn(block: FlatBlock, range: Range): Piece[] {
  const pieces: Piece[] = [];
  for (const parameter of block.parameters) {
    const begin = Math.max(range.begin, parameter.offset);
    const end = Math.min(range.end, parameter.offset + parameter.numel);
    if (begin >= end) continue;
    const parameterBegin = begin - parameter.offset;
    pieces.push({ parameter, parameterBegin, rangeBegin: begin - range.begin, numel: end - begin });
  }
  return pieces;
}
