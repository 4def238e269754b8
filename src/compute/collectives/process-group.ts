import type { Tensor } from "../tensor/index.ts";

/** Half-open range of elements of a flat tensor, one member's. */
export interface MemberRange {
  readonly begin: number;
  readonly end: number;
}

/** A flat tensor that the members of a group fill together, as one of them has it. */
export interface Gathered {
  /** This member's own range, filled. */
  readonly own: Tensor;
  /** The ranges that this member is to write; undefined for what is written in the same memory: its own, and its neighbours'. */
  readonly others: readonly (Tensor | undefined)[];
}

/**
 * What members of one axis compute together beside their event loops. Every operation is asynchronous and named by a key, its
 * place in the program ("reduce/12/h.3"): members may come early, late or interleaved, no order between keys is needed and
 * none can deadlock. Each member takes part in a key once. Sums are in rank order, in float32: the same bits whatever carries
 * the bytes. All throw `COLLECTIVE_ABORTED` once a member has ended.
 */
export interface ProcessGroup {
  /** This member's place. */
  readonly rank: number;
  readonly size: number;
  /** Resolves once every member has come. */
  barrier(key: string): Promise<void>;
  /** All members' values, in order. `value` and what comes back are the caller's to dispose. */
  allGather(key: string, value: Tensor): Promise<Tensor[]>;
  /**
   * Resolves once every member's range of a flat tensor is where this one reads it.
   * @param gathered - left out where all members share memory and each has written its range
   */
  gather(key: string, gathered: Gathered | undefined): Promise<void>;
  /**
   * Sums the members' flat inputs over this one's range.
   * @param input - of the same size on every member; ownership passes
   * @param ranges - of every member, in order
   * @param output - gives the memory of the own range, float32, once the inputs are there
   */
  reduceScatter(
    key: string,
    input: Tensor,
    ranges: readonly MemberRange[],
    output: () => Tensor,
  ): Promise<void>;
  /**
   * Sums the members' flat inputs, all of them on every member.
   * @param ranges - who sums what, where that is shared out
   * @param output - gives the memory of the whole, float32, once the inputs are there
   */
  allReduce(key: string, input: Tensor, ranges: readonly MemberRange[], output: () => Tensor): Promise<void>;
}
