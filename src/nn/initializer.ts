import type { DType, Tensor } from "../tensor/index.ts";
import { noGrad, ops, scope, tensor } from "../tensor/index.ts";
import { logicalRuns, type ParameterSplit } from "./parameter-split.ts";
import { streamOf } from "./randomness.ts";

/** How the first values of a parameter come about. Plain data: it travels in messages and prints in logs. */
export type Initializer =
  | { readonly kind: "normal"; readonly mean: number; readonly std: number }
  | { readonly kind: "uniform"; readonly low: number; readonly high: number }
  | { readonly kind: "constant"; readonly value: number }
  | { readonly kind: "data"; readonly values: readonly number[] };

/** Draws from a normal distribution. */
export function normal(mean: number, std: number): Initializer {
  return { kind: "normal", mean, std };
}

/** Draws from a uniform distribution over [low, high). */
export function uniform(low: number, high: number): Initializer {
  return { kind: "uniform", low, high };
}

/** Every element 0. */
export const zeros: Initializer = { kind: "constant", value: 0 };

/** Every element 1. */
export const ones: Initializer = { kind: "constant", value: 1 };

/** Given values, row-major, one for each element of the parameter. */
export function fromValues(values: readonly number[]): Initializer {
  return { kind: "data", values };
}

/** What a parameter is before it has memory: plain data, so that a shard in another thread can fill its slice. */
export interface ParameterSpec {
  /** Full name from the root of the model, as Hugging Face spells it. */
  readonly name: string;
  /** Of what is held: a piece, where the parameter is split. */
  readonly shape: readonly number[];
  /** Which part of the whole parameter it is; left out for the whole. */
  readonly split?: ParameterSplit;
  /** Of the master copy; what is bound for computing may be narrower. */
  readonly dtype: DType;
  readonly init: Initializer;
}

/**
 * Fills `slice` with the initial values of elements [begin, begin + slice.numel) of a parameter, row-major. Random
 * values are a function of (seed, parameter name, element of the whole parameter) alone, so a model initialised piece
 * by piece has the same bits as one initialised whole, for every number of shards and every split.
 * @param slice - contiguous, any shape, float dtype; written in place
 */
export function initializeSlice(
  slice: Tensor,
  spec: Pick<ParameterSpec, "name" | "init" | "shape" | "split">,
  seed: number,
  begin: number,
): void {
  noGrad(() =>
    scope(() => {
      const flat = slice.view([-1]);
      if (spec.split !== undefined) flat.zero_();
      for (const run of logicalRuns(spec.shape, spec.split, begin, slice.numel)) {
        fill(flat.narrow(0, run.begin - begin, run.numel), spec, seed, run.logicalBegin);
      }
    }),
  );
}

function fill(slice: Tensor, spec: Pick<ParameterSpec, "name" | "init">, seed: number, begin: number): void {
  const { init } = spec;
  switch (init.kind) {
    case "normal":
      return void ops.troupe.philoxNormal_(slice, init.mean, init.std, seed, streamOf(spec.name), begin);
    case "uniform":
      return void ops.troupe.philoxUniform_(slice, init.low, init.high, seed, streamOf(spec.name), begin);
    case "constant":
      return void slice.fill_(init.value);
    case "data":
      return void slice.copy_(tensor(init.values.slice(begin, begin + slice.numel), { dtype: slice.dtype }));
    default:
      init satisfies never;
  }
}
