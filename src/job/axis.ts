import type { ReduceOp } from "../compute/collectives/index.ts";
import type { Tensor } from "../compute/tensor/index.ts";

/**
 * The ranks along one axis of the mesh, seen from one of them, and their collectives. All of them must make the same calls in
 * the same order. Every result is a new tensor, differentiable except where noted; gradients are those of the sum of all
 * ranks' losses. On an axis of one rank each collective is the identity or what it does for one rank.
 */
export interface Axis {
  /** This rank's index on the axis, from 0. */
  readonly index: number;
  /** Number of ranks on the axis. */
  readonly size: number;

  /** The reduction of all ranks' `x`, on every rank. Numbers may be reduced too, without a gradient. */
  allReduce(x: Tensor, op?: ReduceOp): Tensor;
  allReduce(x: number, op?: ReduceOp): number;
  /** All ranks' `x`, of equal shapes, concatenated along dim 0 in rank order, on every rank. */
  allGather(x: Tensor): Tensor;
  /** Each rank's rows, whose numbers may differ, in rank order. Not differentiable. */
  gather(rows: Tensor): Tensor[];
  /** This rank's share of dim 0 of the reduction of all ranks' `x`. */
  reduceScatter(x: Tensor, op?: ReduceOp): Tensor;
  /** `x` of `root` on every rank. */
  broadcast(x: Tensor, root?: number): Tensor;
  /** Sends rows of dim 0 to each rank and receives rows from each, in rank order; in equal parts, or as `splits` says. */
  allToAll(
    x: Tensor,
    splits?: { readonly output: readonly number[]; readonly input: readonly number[] },
  ): Tensor;
  /** Sends `x` to another rank's `receive`; returns once it was received. Not differentiable. */
  send(x: Tensor, to: number): void;
  /** Receives a tensor of the shape and dtype of `like` from another rank. Not differentiable. */
  receive(like: Tensor, from: number): Tensor;
  /** Returns once every rank has called it. */
  barrier(): void;
}
