import type { DType, Tensor } from "../tensor/index.ts";
import { noGrad, ops, scope, tensor } from "../tensor/index.ts";
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
  readonly shape: readonly number[];
  /** Of the master copy; what is bound for computing may be narrower. */
  readonly dtype: DType;
  readonly init: Initializer;
}

/**
 * Fills `slice` with the initial values of elements [begin, begin + slice.numel) of a parameter, row-major. Random
 * values are a function of (seed, parameter name, element index) alone, so a model initialised shard by shard has
 * the same bits as one initialised whole, for every number of shards.
 * @param slice - contiguous, any shape, float dtype; written in place
 */
export function initializeSlice(
  slice: Tensor,
  spec: Pick<ParameterSpec, "name" | "init">,
  seed: number,
  begin: number,
): void {
  const { init } = spec;
  noGrad(() =>
    scope(() => {
      switch (init.kind) {
        case "normal":
          return void ops.troupe.philoxNormal_(slice, init.mean, init.std, seed, streamOf(spec.name), begin);
        case "uniform":
          return void ops.troupe.philoxUniform_(slice, init.low, init.high, seed, streamOf(spec.name), begin);
        case "constant":
          return void slice.fill_(init.value);
        case "data": {
          const values = init.values.slice(begin, begin + slice.numel);
          return void slice.copy_(tensor(values, { dtype: slice.dtype }).view(slice.shape));
        }
        default:
          init satisfies never;
      }
    }),
  );
}
