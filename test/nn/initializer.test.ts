import { describe, expect, test } from "vitest";
import {
  dematerialize,
  fromValues,
  initializeSlice,
  Linear,
  materialize,
  normal,
  ones,
  type ParameterSpec,
  specOf,
  streamOf,
  uniform,
  zeros,
} from "../../src/compute/nn/index.ts";
import { type DType, empty, scope } from "../../src/compute/tensor/index.ts";

function initialized(
  init: ParameterSpec["init"],
  numel: number,
  begin = 0,
  seed = 7,
  dtype: DType = "float32",
) {
  return scope(() => {
    const slice = empty([numel], { dtype });
    initializeSlice(slice, { name: "h.0.weight", init, shape: [slice.numel] }, seed, begin);
    return Array.from(slice.to("float32").toTypedArray() as Float32Array);
  });
}

describe("initial values", () => {
  test.each([
    ["normal", normal(0.5, 0.02)],
    ["uniform", uniform(-0.1, 0.3)],
    ["constant", ones],
    ["given", fromValues(Array.from({ length: 1000 }, (_, index) => index / 8))],
  ])("are the same bits filled at once and slice by slice: %s", (_, init) => {
    const whole = initialized(init, 1000);
    const slices = [0, 1, 130, 777].map((begin, index, all) =>
      initialized(init, (all[index + 1] ?? 1000) - begin, begin),
    );
    expect(slices.flat()).toEqual(whole);
  });

  test("have the distribution that was asked for", () => {
    const draws = initialized(normal(0.5, 0.02), 100_000);
    const mean = draws.reduce((a, b) => a + b) / draws.length;
    const std = Math.sqrt(draws.reduce((sum, x) => sum + (x - mean) ** 2, 0) / draws.length);
    expect(mean).toBeCloseTo(0.5, 3);
    expect(std).toBeCloseTo(0.02, 3);
    const spread = initialized(uniform(-0.1, 0.3), 100_000);
    expect(Math.min(...spread.slice(0, 50_000))).toBeGreaterThanOrEqual(-0.1);
    expect(Math.max(...spread.slice(0, 50_000))).toBeLessThanOrEqual(0.3);
    expect(spread.reduce((a, b) => a + b) / spread.length).toBeCloseTo(0.1, 2);
    expect(initialized(zeros, 3)).toEqual([0, 0, 0]);
  });

  test("differ by seed and by name", () => {
    expect(initialized(normal(0, 1), 8)).not.toEqual(initialized(normal(0, 1), 8, 0, 8));
    expect(streamOf("h.0.weight")).not.toBe(streamOf("h.1.weight"));
  });

  test("come from streams that stay what they are", () => {
    // FNV-1a 64 of "" and "a" are cbf29ce484222325 and af63dc4c8601ec8c; the upper 11 bits are folded in.
    const folded = (hash: bigint) => Number((hash >> 53n) ^ BigInt.asUintN(53, hash));
    expect(streamOf("")).toBe(folded(0xcbf29ce484222325n));
    expect(streamOf("a")).toBe(folded(0xaf63dc4c8601ec8cn));
  });

  test("fill a model that requires gradients, and are released with it", () => {
    const layer = new Linear(64, 32);
    materialize(layer, { seed: 3, dtype: "float64" });
    expect(layer.weight.tensor).toMatchObject({ dtype: "float64", requiresGrad: true, shape: [32, 64] });
    expect([...layer.namedState()].map(([name, parameter]) => specOf(name, parameter))).toEqual([
      { name: "weight", shape: [32, 64], dtype: "float32", init: uniform(-0.125, 0.125) },
      { name: "bias", shape: [32], dtype: "float32", init: uniform(-0.125, 0.125) },
    ]);
    const memory = layer.weight.tensor;
    dematerialize(layer);
    expect(memory.disposed).toBe(true);
    expect(layer.weight.bound).toBe(false);
  });
});
