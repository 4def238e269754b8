import { describe, expect, it } from "vitest";
import { empty, ops, setNumThreads, type Tensor } from "../../src/compute/tensor/index.ts";
import { numbers, refusal } from "../tensor/numbers.ts";
import { expectSame, floatTypes } from "./inputs.ts";

const uniform = (to: Tensor, seed: number, stream: number, offset: number) =>
  ops.troupe.philoxUniform_(to, 0, 1, seed, stream, offset);

const normals = (shape: readonly number[], offset: number) =>
  ops.troupe.philoxNormal_(empty(shape), 0, 1, 7, 3, offset);

describe("philox", () => {
  it("gives the published words of Philox4x32-10 for counter 0 and key 0", () => {
    const words = numbers(uniform(empty([4]), 0, 0, 0)).map((value) => value * 2 ** 24);
    expect(words).toEqual([0x6627e8, 0xe169c5, 0xbc57ac, 0x9b00db]); // the upper 24 of 32 bits
  });

  it("a random number depends on its position alone: a part drawn by itself equals that part of the complete tensor", () => {
    const whole = normals([5000], 0);
    for (const [begin, length] of [
      [0, 1],
      [1, 3],
      [63, 66],
      [777, 1025],
      [4999, 1],
    ] as const) {
      expectSame(normals([length], begin), whole.narrow(0, begin, length));
    }
  });

  it("gives the same bits for every number of threads", () => {
    setNumThreads(1);
    const one = normals([100_003], 5);
    setNumThreads(2);
    const two = normals([100_003], 5);
    setNumThreads(1);
    expectSame(two, one);
  });

  it("differs by seed and by stream", () => {
    const draw = (seed: number, stream: number) => numbers(uniform(empty([8]), seed, stream, 0));
    expect(draw(1, 2)).not.toEqual(draw(2, 1));
    expect(draw(1, 2)).not.toEqual(draw(1, 3));
    expect(draw(2 ** 40, 0)).not.toEqual(draw(0, 0));
    expect(draw(1, 2)).toEqual(draw(1, 2));
  });

  it("draws standard normals: mean, deviation, kurtosis and independence of neighbours", () => {
    const t = normals([1_000_000], 0).to("float64");
    expect(Math.abs(t.mean().item())).toBeLessThan(4e-3);
    expect(Math.abs(t.square().mean().item() - 1)).toBeLessThan(6e-3);
    expect(Math.abs(t.pow(4).mean().item() - 3)).toBeLessThan(4e-2);
    const products = t.narrow(0, 0, 999_999).mul(t.narrow(0, 1, 999_999));
    expect(Math.abs(products.mean().item())).toBeLessThan(4e-3);
  });

  it("draws uniforms within [low, high)", () => {
    const t = ops.troupe.philoxUniform_(empty([1_000_000]), -2, 3, 1, 2, 3);
    expect(t.min().item()).toBeGreaterThanOrEqual(-2);
    expect(t.max().item()).toBeLessThan(3);
    expect(Math.abs(t.mean().item() - 0.5)).toBeLessThan(8e-3);
  });

  it.each(floatTypes)("draws the same numbers in %s but for rounding, into any strides", (dtype) => {
    const plain = ops.troupe.philoxNormal_(empty([7, 9]), 1, 2, 5, 6, 7);
    const strided = ops.troupe.philoxNormal_(empty([9, 7], { dtype }).transpose(0, 1), 1, 2, 5, 6, 7);
    expectSame(strided, plain.to(dtype));
  });

  it("refuses integers and negative offsets", () => {
    expect(refusal(() => uniform(empty([4], { dtype: "int64" }), 0, 0, 0))?.message).toContain(
      "floating point",
    );
    expect(refusal(() => uniform(empty([4]), 0, 0, -1))?.message).toContain("offset not to be negative");
  });
});
