import { expect } from "vitest";
import type { Tensor } from "../../src/compute/tensor/index.ts";

/** The elements of a tensor as plain numbers, in row-major order. */
export function numbers(tensor: Tensor): number[] {
  const raw = tensor.dtype === "bfloat16" || tensor.dtype === "float16";
  return Array.from((raw ? tensor.to("float32") : tensor).toTypedArray(), Number);
}

/** Expects each value within `tolerance`, relative where values are above 1. */
export function expectClose(actual: readonly number[], expected: readonly number[], tolerance: number): void {
  const close =
    actual.length === expected.length &&
    actual.every((value, i) => isClose(value, expected[i] ?? Number.NaN, tolerance));
  if (!close) expect(actual).toEqual(expected); // prints both
}

function isClose(a: number, b: number, tolerance: number): boolean {
  return Math.abs(a - b) <= tolerance * Math.max(1, Math.abs(b));
}

/** Returns the code and message of a call's error, or undefined if it does not throw. */
export function refusal(body: () => unknown): { code: unknown; message: string } | undefined {
  try {
    body();
    return undefined;
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    return { code: "code" in error ? error.code : undefined, message: error.message };
  }
}
