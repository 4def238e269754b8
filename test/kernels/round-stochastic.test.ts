import { describe, expect, it } from "vitest";
import { empty, ops, setNumThreads, type Tensor, tensor } from "../../src/compute/tensor/index.ts";
import { numbers, refusal } from "../tensor/numbers.ts";
import { expectSame, normal } from "./inputs.ts";

const narrow = ["bfloat16", "float16"] as const;
type Narrow = (typeof narrow)[number];

function rounded(values: Tensor, dtype: Narrow, offset = 0): Tensor {
  const out = empty(values.shape, { dtype });
  ops.troupe.roundStochastic_(out, values, 1337, 42, offset);
  return out;
}

/** Mean of (rounded - value) / |value|. */
function bias(values: Tensor, result: Tensor): number {
  const exact = values.to("float64");
  return result.to("float64").sub(exact).div(exact.abs()).mean().item();
}

describe("stochastic rounding", () => {
  it.each(narrow)("is right in the mean of a million values in %s", (dtype) => {
    const values = normal([1_000_000], 1).abs().add(0.1);
    // One rounding errs by up to 2⁻⁷ (bfloat16) or 2⁻¹⁰ (float16) of the value; a million average to a thousandth of
    // that. Four standard deviations.
    const unit = dtype === "bfloat16" ? 2 ** -7 : 2 ** -10;
    expect(Math.abs(bias(values, rounded(values, dtype)))).toBeLessThan((4 * unit) / 1000);
  });

  it("does not truncate, as BMTrain's bfloat16 Adam on the CPU does: that is 0.28 % too small in the mean", () => {
    // Appendix A 13 of the reference: -0.28 % for truncation, about 0 for rounding to nearest, over 10⁶ normals.
    const values = normal([1_000_000], 2);
    const magnitudes = values.abs();
    const raw = new Uint32Array((magnitudes.toTypedArray() as Float32Array).slice().buffer);
    const truncated = tensor(new Float32Array(raw.map((bits) => bits & 0xffff0000).buffer));
    expect(bias(magnitudes, truncated)).toBeCloseTo(-0.0028, 4);
    expect(Math.abs(bias(magnitudes, rounded(magnitudes, "bfloat16")))).toBeLessThan(5e-5);
    expect(Math.abs(bias(magnitudes, magnitudes.to("bfloat16")))).toBeLessThan(5e-5);
  });

  it.each(narrow)("moves to one of the two neighbours, and leaves what %s can hold as it is", (dtype) => {
    const values = ops.cat([normal([50_000], 3), normal([50_000], 4, { std: 1e-6 })]);
    const result = rounded(values, dtype);
    const nearest = values.to(dtype);
    const error = result.to("float64").sub(values.to("float64")).abs();
    const ulp = nearest
      .to("float64")
      .abs()
      .mul(dtype === "bfloat16" ? 2 ** -7 : 2 ** -10)
      .clampMin(2 ** -24);
    expect(error.sub(ulp).max().item()).toBeLessThanOrEqual(0);
    expectSame(rounded(nearest.to("float32"), dtype), nearest);
  });

  it.each([
    ["bfloat16", 1 + 2 ** -9, [1, 1 + 2 ** -7], 0.25],
    ["float16", 1 + 2 ** -12, [1, 1 + 2 ** -10], 0.25],
    ["float16", 2.5 * 2 ** -24, [2 * 2 ** -24, 3 * 2 ** -24], 0.5],
    ["float16", -(2 ** -26), [-0, -(2 ** -24)], 0.25],
  ] as const)("in %s rounds %d to its neighbours by their nearness", (dtype, value, [near, far], chance) => {
    const results = numbers(rounded(tensor(new Float32Array(100_000).fill(value)), dtype));
    expect(new Set(results)).toEqual(new Set([near, far]));
    // A standard deviation of a share of 100,000 is at most 0.0016.
    expect(results.filter((result) => result === far).length / 1e5).toBeCloseTo(chance, 2);
  });

  it("keeps what is finite finite, and infinity and NaN", () => {
    const values = tensor(new Float32Array([3.4e38, -3.4e38, Infinity, -Infinity, NaN, 0, -0]));
    const largest = 3.3895313892515355e38;
    expect(numbers(rounded(values, "bfloat16"))).toEqual([
      largest,
      -largest,
      Infinity,
      -Infinity,
      NaN,
      0,
      -0,
    ]);
    expect(numbers(rounded(tensor(new Float32Array([65_535, 65_536, NaN])), "float16"))).toEqual([
      65_504,
      Infinity,
      NaN,
    ]);
  });

  it("draws by place alone: the same bits for every split and number of threads", () => {
    const values = normal([100_003], 5);
    setNumThreads(1);
    const whole = rounded(values, "bfloat16");
    setNumThreads(2);
    expectSame(rounded(values, "bfloat16"), whole);
    setNumThreads(1);
    expectSame(rounded(values.narrow(0, 777, 1000), "bfloat16", 777), whole.narrow(0, 777, 1000));
  });

  it("refuses a target that is not narrow, and values of another length", () => {
    expect(refusal(() => ops.troupe.roundStochastic_(empty([4]), empty([4]), 1, 1, 0))?.message).toContain(
      "out to be bfloat16 or float16",
    );
    expect(refusal(() => rounded(empty([4]).to("float64"), "float16"))?.message).toContain("float32");
  });
});
