import type { ParameterSpec } from "../../nn/index.ts";
import type { FlatPiece } from "../../optim/index.ts";
import { numelOf } from "../../tensor/index.ts";
import type { ZeroLevel } from "../layout/zero.ts";
import { wordsOf } from "./constant-words.ts";

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

/**
 * Each buffer ends with one more element: in the writes that a rank hands on from a step, the number of writes summed in the
 * elements before it; in the buffer's own block, padding.
 */
export const COUNT_NUMEL = 1;

/** Where one parameter lies in its block's flat buffer. */
export interface FlatParameter extends ParameterSpec {
  /** In elements of the flat buffer. */
  readonly numel: number;
  /** In elements from the start of the flat buffer. */
  readonly offset: number;
}

/** Says which ranks share the parameters of a flat buffer, and how they are used. Plain data. */
export interface Sharing {
  /** Ranks of the world that hold them, in order: each has a slice; gradients are summed over all. */
  readonly group: readonly number[];
  /** Distance in the world between the ranks that hold the parts of a split parameter. Default: 1, of tensor-parallel neighbours. */
  readonly partStride?: number;
  /** Whether their gradient counts in the global norm here: among groups with equal copies, one counts. */
  readonly counted: boolean;
  /**
   * Whether they are declared trainable. A frozen block is gathered and saved; it is reduced, updated and given optimizer state
   * from the first step that trains some of it.
   */
  readonly trainable: boolean;
  /** Whether they are buffers, which forward writes: see `COUNT_NUMEL`. */
  readonly written: boolean;
  /** Whether their dtype is not float32, so that they never change: see `constantIn`. */
  readonly constant: boolean;
  /** Whether they are the base under a delta: never trained, so without masters, and never saved. */
  readonly base: boolean;
}

/** The parameters that are gathered, reduced and updated together: one flat buffer, one slice a rank. Plain data. */
export interface FlatBlock extends Sharing {
  /** Position among the rank's flat blocks. */
  readonly index: number;
  /** Name, unique on each rank and the same on all of the group. */
  readonly name: string;
  readonly zero: ZeroLevel;
  readonly parameters: readonly FlatParameter[];
  /** Elements of the padded flat buffer: `sliceNumel` × ranks of the group. */
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
 * Lays parameters out one after the other, aligned, and pads the block to one slice for each rank of the group.
 * @param specs - in the order of the module's `namedParameters()`
 * @returns plain data; the same on every rank
 */
export function layoutBlock(
  index: number,
  name: string,
  zero: ZeroLevel,
  specs: readonly ParameterSpec[],
  sharing: Sharing,
): FlatBlock {
  let offset = 0;
  const parameters = specs.map((spec): FlatParameter => {
    const numel = sharing.constant ? wordsOf(spec) : numelOf(spec.shape);
    const parameter = { ...spec, numel, offset };
    offset = roundUp(offset + numel + (sharing.written ? COUNT_NUMEL : 0), PARAMETER_ALIGNMENT);
    return parameter;
  });
  const numRanks = sharing.group.length;
  const sliceNumel = roundUp(Math.ceil(offset / numRanks), SLICE_ALIGNMENT);
  return { index, name, zero, parameters, numel: sliceNumel * numRanks, sliceNumel, ...sharing };
}

/** @returns the sharing of `numRanks` data-parallel ranks from 0: one group, trained */
export function replicas(numRanks: number): Sharing {
  return {
    group: Array.from({ length: numRanks }, (_, rank) => rank),
    counted: true,
    trainable: true,
    written: false,
    constant: false,
    base: false,
  };
}

/**
 * @param frozen - names of the parameters that the step does not train
 * @returns whether a step changes the block, so that its ranks reduce gradients, or writes to buffers
 */
export function isUpdated(
  { parameters, written, constant }: FlatBlock,
  frozen: ReadonlySet<string>,
): boolean {
  return written || (!constant && parameters.some(({ name }) => !frozen.has(name)));
}

/** @returns the position of a rank of the world within the group that holds the block */
export function memberOf(block: Sharing, rank: number): number {
  const member = block.group.indexOf(rank);
  if (member < 0)
    throw new RangeError(`[parallel] rank ${rank} holds nothing of a block of [${block.group}]`);
  return member;
}

/**
 * @returns the ranks of the world that together hold the complete parameters of the block, in order, the same on all of them:
 * the holders of slices and, if parameters are split, their neighbours with the other parts
 */
export function holdersOf(block: FlatBlock, rank: number): number[] {
  const { index, count } = block.parameters[0]?.split ?? { index: 0, count: 1 };
  const { partStride = 1 } = block;
  const holders = block.zero === 0 ? [rank] : block.group;
  return holders.flatMap((holder) =>
    Array.from({ length: count }, (_, part) => holder + (part - index) * partStride),
  );
}

/** @returns the elements of the flat buffer that the `member`-th rank of the group owns when the block is split */
export function sliceOf(block: FlatBlock, member: number): Range {
  return { begin: member * block.sliceNumel, end: (member + 1) * block.sliceNumel };
}

/** One parameter's share of a range of the flat buffer. */
export interface Piece extends FlatPiece {
  readonly parameter: FlatParameter;
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
