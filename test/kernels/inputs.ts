import { expect } from "vitest";
import { type DType, empty, grad, ones, ops, type Tensor } from "../../src/compute/tensor/index.ts";
import { numbers, refusal } from "../tensor/numbers.ts";

/** The dtypes that kernels compute in. */
export const floatTypes = ["float32", "bfloat16", "float16"] as const;
export type FloatType = (typeof floatTypes)[number];

/** Dtypes that this libtorch can multiply matrices in: 1.13 has no float16 products on the CPU. */
export const productTypes: readonly FloatType[] = floatTypes.filter((dtype) => {
  const matrix = ones([2, 2], { dtype });
  return refusal(() => matrix.mm(matrix)) === undefined;
});

/** How far a result may be from float64, relative to its largest element, when inputs are exact and the result is rounded once. */
export const roundingError: Record<FloatType, number> = {
  float32: 2e-6,
  bfloat16: 2 ** -8,
  float16: 2 ** -10,
};

/** Normal numbers, the same for a `stream` in every dtype but for rounding. */
export function normal(
  shape: readonly number[],
  stream: number,
  options: { readonly dtype?: DType; readonly std?: number } = {},
): Tensor {
  const drawn = ops.troupe.philoxNormal_(empty(shape), 0, options.std ?? 1, 2024, stream, 0);
  return drawn.to(options.dtype ?? "float32");
}

/** A leaf of the same values in float64: what a reference is computed from. */
export function exact(t: Tensor): Tensor {
  return t.detach().to("float64").requiresGrad_();
}

/** Expects every element within `tolerance` times the largest of `expected`. */
export function expectNear(actual: Tensor, expected: Tensor, tolerance: number): void {
  expect(actual.shape).toEqual(expected.shape);
  if (actual.numel === 0) return;
  const difference = actual.detach().to("float64").sub(expected.detach().to("float64")).abs().max().item();
  const scale = Math.max(expected.detach().to("float64").abs().max().item(), 1e-30);
  expect(difference / scale).toBeLessThanOrEqual(tolerance);
}

/** Expects the same bits. */
export function expectSame(actual: Tensor, expected: Tensor): void {
  expect(actual.dtype).toBe(expected.dtype);
  expect(numbers(actual.detach())).toEqual(numbers(expected.detach()));
}

/** The gradients of several inputs, none of them missing. */
export function gradientsOf(
  outputs: readonly Tensor[],
  inputs: readonly Tensor[],
  gradients: readonly Tensor[],
): Tensor[] {
  return grad(outputs, inputs, gradients).map((gradient) => {
    if (gradient === null) throw new Error("an input without a gradient");
    return gradient;
  });
}
