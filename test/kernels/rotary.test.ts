import { describe, expect, it } from "vitest";
import { explicitRotation } from "../../src/compute/nn/attention/rotary.ts";
import { ops, type Tensor, zeros } from "../../src/compute/tensor/index.ts";
import { refusal } from "../tensor/numbers.ts";
import { exact, expectNear, expectSame, floatTypes, gradientsOf, normal, roundingError } from "./inputs.ts";

// [batch, heads, time, width] and how many features are turned
const cases = (
  [
    [1, 1, 1, 2, 2],
    [2, 3, 5, 8, 8],
    [1, 2, 7, 33, 20],
    [2, 4, 300, 64, 64],
  ] as const
).flatMap((shape) => floatTypes.map((dtype) => [...shape, dtype] as const));

describe("rotary", () => {
  it.each(cases)(
    "agrees with its definition in float64 on [%i,%i,%i,%i], %i of them turned, in %s, and so does its gradient",
    (batch, heads, time, width, turned, dtype) => {
      const x = normal([batch, time, heads, width], 1, { dtype }).transpose(1, 2).requiresGrad_();
      const angle = normal([time, turned / 2], 2, { std: 3 });
      const [cosines, sines] = [angle.cos(), angle.sin()];
      const y = ops.troupe.rotary(x, cosines, sines);
      const wide = exact(x);
      const expected = explicitRotation(wide, { cosines: cosines.to("float64"), sines: sines.to("float64") });
      expect(y.dtype).toBe(dtype);
      expectNear(y, expected, roundingError[dtype]);
      const dy = normal([batch, heads, time, width], 3, { dtype });
      const [wanted] = gradientsOf([expected], [wide], [dy.to("float64")]);
      expectNear(gradientsOf([y], [x], [dy])[0] as Tensor, wanted as Tensor, roundingError[dtype]);
    },
  );

  it("does not care how its input lies in memory", () => {
    const x = normal([2, 3, 8, 5], 1).transpose(2, 3);
    const angle = normal([5, 4], 2);
    expectSame(
      ops.troupe.rotary(x, angle.cos(), angle.sin()),
      ops.troupe.rotary(x.contiguous(), angle.cos(), angle.sin()),
    );
  });

  it("refuses angles of other positions, of more features than there are, and of other dtypes", () => {
    const x = zeros([1, 2, 3, 8]);
    const call = (angles: Tensor) => refusal(() => ops.troupe.rotary(x, angles, angles))?.message;
    expect(call(zeros([4, 4]))).toContain("x to be [batch, heads, time, width]");
    expect(call(zeros([3, 5]))).toContain("x to be [batch, heads, time, width]");
    expect(call(zeros([3, 4], { dtype: "float64" }))).toContain("to be float32");
  });
});
