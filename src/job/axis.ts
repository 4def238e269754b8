import type { ReduceOp } from "../collectives/index.ts";
import type { Tensor } from "../tensor/index.ts";

/**
 * Ranks that stand along one axis, seen from one of them: what they can compute together. All of them must call the same, in
 * the same order. What a function returns is a new tensor, and differentiable unless told otherwise: the loss is taken as
 * the sum of all ranks' losses. Where a rank is alone, each is what it is for one rank.
 */
export interface Axis {
  /** This rank's place, from 0. */
  readonly index: number;
  /** How many there are. */
  readonly size: number;

  /** The reduction of all ranks' `x`, on each of them; of numbers too, without a gradient. */
  allReduce(x: Tensor, op?: ReduceOp): Tensor;
  allReduce(x: number, op?: ReduceOp): number;
  /** All ranks' `x` along dim 0, in rank order, on each of them: the shapes are equal. */
  allGather(x: Tensor): Tensor;
  /** The same of rows whose numbers differ, as a list of each rank's. Not differentiable. */
  gather(rows: Tensor): Tensor[];
  /** This rank's share of dim 0 of the reduction of all ranks' `x`. */
  reduceScatter(x: Tensor, op?: ReduceOp): Tensor;
  /** `x` of `root` on every rank. */
  broadcast(x: Tensor, root?: number): Tensor;
  /** Rows of dim 0 to each rank and from each, in rank order; dim 0 is cut evenly unless `splits` says how many rows go where. */
  allToAll(
    x: Tensor,
    splits?: { readonly output: readonly number[]; readonly input: readonly number[] },
  ): Tensor;
  /** Gives `x` to the `receive` of another rank; returns once it was taken. Not differentiable. */
  send(x: Tensor, to: number): void;
  /** What another rank sends, of the shape and dtype of `like`. Not differentiable. */
  receive(like: Tensor, from: number): Tensor;
  /** Returns once every rank has come here. */
  barrier(): void;
}
