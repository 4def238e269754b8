import { ops, type Tensor } from "../tensor/index.ts";
import type { Communicator } from "./communicator.ts";
import { type ReduceOp, reductionCode } from "./reduce-op.ts";

// Every function returns a new tensor and is differentiable. The loss is taken as the sum of all ranks' losses, which
// makes each backward the adjoint of its forward; it runs in native code, in the thread that calls backward, in the same
// order on every rank whose graph was built in the same order. Meta tensors communicate nothing and keep their shapes.

/** Identity; backward: all-reduce. Goes before a layer whose weights are split by columns (f of Megatron-LM, 2019). */
export function copyToGroup(x: Tensor, comm: Communicator): Tensor {
  return ops.troupe.copyToGroup(x, comm.number);
}

/**
 * All-reduce; backward: identity. Goes after a layer whose weights are split by rows (g of Megatron-LM, 2019). Correct if
 * every rank computes the same from the result, so that each has the complete gradient; otherwise use {@link allReduce}.
 */
export function reduceFromGroup(x: Tensor, comm: Communicator): Tensor {
  return ops.troupe.reduceFromGroup(x, comm.number);
}

/**
 * Concatenates all ranks' `x` along `dim`; backward: this rank's slice. Correct if every rank computes the same from the result.
 */
export function gatherFromGroup(x: Tensor, comm: Communicator, dim: number): Tensor {
  return ops.troupe.gatherFromGroup(x, comm.number, dim);
}

/**
 * This rank's slice of `dim`, which `size` must divide; backward: concatenates all ranks' gradients. `x` must be equal on all
 * ranks.
 */
export function scatterToGroup(x: Tensor, comm: Communicator, dim: number): Tensor {
  return ops.troupe.scatterToGroup(x, comm.number, dim);
}

/**
 * Concatenates all ranks' `x` along `dim`; backward: reduce-scatter. Goes before a split layer if the sequence is split
 * outside it.
 */
export function gatherSequence(x: Tensor, comm: Communicator, dim: number): Tensor {
  return ops.troupe.gatherSequence(x, comm.number, dim);
}

/** Sums all ranks' `x` and keeps this rank's slice of `dim`, which `size` must divide; backward: all-gather. */
export function reduceScatterSequence(x: Tensor, comm: Communicator, dim: number): Tensor {
  return ops.troupe.reduceScatterSequence(x, comm.number, dim);
}

/**
 * Sends rows of dim 0 to each rank and receives rows from each, as {@link Communicator.allToAll}; backward: the same with the
 * splits exchanged.
 * @param splits - rows from and to each rank; left out: dim 0 is cut evenly
 */
export function allToAll(
  x: Tensor,
  comm: Communicator,
  splits: { readonly output: readonly number[]; readonly input: readonly number[] } = {
    output: [],
    input: [],
  },
): Tensor {
  return ops.troupe.groupAllToAll(x, comm.number, splits.output, splits.input);
}

/**
 * Reduces all ranks' `x`. Backward: the gradients are summed over the ranks. Then `sum` leaves them as they are, `avg`
 * divides by `size`, `max` and `min` give them in equal parts to the ranks that had that value, and `prod` multiplies by the
 * product of the other ranks' values, without dividing.
 */
export function allReduce(x: Tensor, comm: Communicator, op: ReduceOp = "sum"): Tensor {
  return ops.troupe.groupAllReduce(x, comm.number, reductionCode(op));
}

/** Concatenates all ranks' `x` along dim 0; backward: reduce-scatter. */
export function allGather(x: Tensor, comm: Communicator): Tensor {
  return gatherSequence(x, comm, 0);
}

/** Reduces all ranks' `x` and keeps this rank's share of dim 0, which `size` must divide; backward as {@link allReduce}. */
export function reduceScatter(x: Tensor, comm: Communicator, op: ReduceOp = "sum"): Tensor {
  return ops.troupe.groupReduceScatter(x, comm.number, reductionCode(op));
}

/** Copies `x` of `root` to every rank; backward: the sum of all gradients at `root`, zero elsewhere. */
export function broadcast(x: Tensor, comm: Communicator, root: number): Tensor {
  return ops.troupe.groupBroadcast(x, comm.number, root);
}
