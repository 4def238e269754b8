import type { Tensor } from "../tensor/index.ts";

/** One member's half-open range of elements of a flat tensor. */
export interface MemberRange {
  readonly begin: number;
  readonly end: number;
}

/** One member's view of a flat tensor that all members of a group fill together. */
export interface Gathered {
  /** This member's own range, filled. */
  readonly own: Tensor;
  /**
   * The other members' ranges, to be written here; undefined for this member's own range and for those that others write in
   * the same memory.
   */
  readonly others: readonly (Tensor | undefined)[];
}

/** Memory for what a member sums. */
export interface Summed {
  /** Float32. */
  readonly sum: Tensor;
  /** Sums of squares of each 1,024 of them, float64; undefined if nobody wants them. */
  readonly squares: Tensor | undefined;
}

/**
 * Collectives of the members of one axis. Every operation is asynchronous and named by a key, its place in the program
 * ("reduce/12/h.3"). Members may join early, late or interleaved; keys need no order and cannot deadlock. Each member joins a
 * key once. Sums are in rank order, in float32, with the same bits for every carrier. All operations throw
 * `COLLECTIVE_ABORTED` once a member has ended.
 */
export interface ProcessGroup {
  /** Rank of this member in the group. */
  readonly rank: number;
  readonly size: number;
  /** Resolves once every member has joined. */
  barrier(key: string): Promise<void>;
  /** Returns all members' values, in order. The caller disposes `value` and the results. */
  allGather(key: string, value: Tensor): Promise<Tensor[]>;
  /**
   * Resolves once this member can read every member's range of a flat tensor.
   * @param gathered - undefined if all members share memory and each has written its range
   */
  gather(key: string, gathered: Gathered | undefined): Promise<void>;
  /**
   * Sums the members' flat inputs over this member's range.
   * @param input - same size on every member; ownership passes
   * @param ranges - ranges of all members, in order
   * @param output - returns memory for this member's range; called once the inputs are there
   */
  reduceScatter(
    key: string,
    input: Tensor,
    ranges: readonly MemberRange[],
    output: () => Summed,
  ): Promise<void>;
  /**
   * Sums the members' flat inputs over all elements, on every member.
   * @param ranges - ranges that the members sum, if the work is divided
   * @param output - returns memory for all elements, float32; called once the inputs are there
   */
  allReduce(key: string, input: Tensor, ranges: readonly MemberRange[], output: () => Tensor): Promise<void>;
}
