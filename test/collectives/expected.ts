import type { ReduceOp } from "../../src/compute/collectives/index.ts";
import { type DType, ops, type Tensor } from "../../src/compute/tensor/index.ts";
import { valuesOfRank } from "../fixtures/collectives/values.ts";

/** Ranks' tensors reduced as promised: one after the other in rank order, in float32 where they are narrower. */
export function reduced(tensors: readonly Tensor[], op: ReduceOp): Tensor {
  const [first] = tensors as [Tensor];
  const wide = tensors.map((x) => (x.dtype === "bfloat16" || x.dtype === "float16" ? x.to("float32") : x));
  const steps = {
    sum: (a: Tensor, b: Tensor) => a.add(b),
    avg: (a: Tensor, b: Tensor) => a.add(b),
    max: ops.maximum,
    min: ops.minimum,
    prod: (a: Tensor, b: Tensor) => a.mul(b),
  };
  const whole = wide.reduce(steps[op]);
  return (op === "avg" ? whole.div(tensors.length) : whole).to(first.dtype);
}

/** 0 to size − 1. */
export function ranks(size: number): number[] {
  return Array.from({ length: size }, (_, rank) => rank);
}

/** The inputs of all ranks, as tensors. */
export function allBrought(size: number, shape: readonly number[], dtype: DType): Tensor[] {
  return ranks(size).map((rank) => valuesOfRank(rank, shape, dtype));
}
