import { describe, expect, it } from "vitest";
import { ones, ops, type Tensor } from "../../src/compute/tensor/index.ts";
import { numbers, refusal } from "../tensor/numbers.ts";
import { expectSame, floatTypes, gradientsOf, normal } from "./inputs.ts";

const drop = (x: Tensor, p = 0.3, offset = 0, run = 1 << 30, stride = 0) =>
  ops.troupe.dropout(x, p, 5, 6, offset, run, stride);

describe("dropout", () => {
  it.each(floatTypes)("drops a share p of %s and scales the rest by 1 / (1 - p)", (dtype) => {
    const y = drop(ones([100_000], { dtype }));
    const kept = numbers(y.ne(0).to("float64").mean())[0] ?? 0;
    expect(Math.abs(kept - 0.7)).toBeLessThan(6e-3);
    expect(y.max().item()).toBeCloseTo(1 / 0.7, 2);
  });

  it("draws the same mask again in backward, and nothing else flows", () => {
    const x = normal([33, 65], 0).requiresGrad_();
    const [gradient] = gradientsOf([drop(x)], [x], [ones([33, 65])]);
    expectSame(gradient as Tensor, drop(ones([33, 65])));
  });

  it("a dropout mask depends on the position alone: a part masked by itself equals that part of the complete tensor", () => {
    const whole = drop(ones([1000]));
    expectSame(drop(ones([301]), 0.3, 77), whole.narrow(0, 77, 301));
  });

  it("masks a part of each row as the complete rows are masked, in backward too", () => {
    const whole = drop(ones([7, 400]));
    const part = ones([7, 100]).requiresGrad_();
    const masked = drop(part, 0.3, 200, 100, 400);
    expectSame(masked.detach(), whole.narrow(1, 200, 100).contiguous());
    const [gradient] = gradientsOf([masked], [part], [ones([7, 100])]);
    expectSame(gradient as Tensor, masked.detach());
  });

  it("counts elements in row-major order whatever the strides", () => {
    const x = normal([12, 20], 1);
    expectSame(drop(x.transpose(0, 1)), drop(x.transpose(0, 1).contiguous()));
  });

  it("keeps all for p = 0, drops all for p = 1 and takes an empty tensor", () => {
    const x = normal([1025], 2);
    expectSame(drop(x, 0), x);
    expect(drop(x, 1).abs().max().item()).toBe(0);
    expect(drop(ones([0])).numel).toBe(0);
  });

  it("drops infinities and NaN to 0", () => {
    expect(
      drop(ones([100]).fill_(Number.NaN), 1)
        .abs()
        .max()
        .item(),
    ).toBe(0);
  });

  it("refuses a p that is no probability and integers", () => {
    expect(refusal(() => drop(ones([4]), 1.5))?.message).toContain("p to be a probability");
    expect(refusal(() => drop(ones([4]), 0.5, 0, 0))?.message).toContain("run to be at least 1");
    expect(refusal(() => drop(ones([4], { dtype: "int64" })))?.message).toContain("x to be float32");
  });
});
