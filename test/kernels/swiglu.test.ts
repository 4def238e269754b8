import { describe, expect, it } from "vitest";
import { ops, type Tensor, tensor, zeros } from "../../src/compute/tensor/index.ts";
import { numbers, refusal } from "../tensor/numbers.ts";
import { exact, expectNear, floatTypes, gradientsOf, normal, roundingError } from "./inputs.ts";

const cases = [[1], [3, 5], [2, 3, 33], [5, 1025]].flatMap((shape) =>
  floatTypes.map((dtype) => [shape.join("x"), dtype, shape] as const),
);

describe("swiglu", () => {
  it.each(cases)(
    "agrees with silu and a product in float64 on %s %s, and so do its gradients",
    (_, dtype, shape) => {
      const [gate, up, dy] = [
        normal(shape, 1, { dtype, std: 3 }).requiresGrad_(),
        normal(shape, 2, { dtype }).requiresGrad_(),
        normal(shape, 3, { dtype }),
      ] as const;
      const y = ops.troupe.swiglu(gate, up);
      const wide = [exact(gate), exact(up)] as const;
      const expected = ops.silu(wide[0]).mul(wide[1]);
      expect(y.dtype).toBe(dtype);
      expectNear(y, expected, roundingError[dtype]);
      const wanted = gradientsOf([expected], wide, [dy.to("float64")]);
      gradientsOf([y], [gate, up], [dy]).forEach((gradient, i) => {
        expectNear(gradient, wanted[i] as Tensor, 2 * roundingError[dtype]);
      });
    },
  );

  it("opens to the right and shuts to the left without overflow, and passes NaN on", () => {
    const y = ops.troupe.swiglu(tensor([1e30, 100, 0, -100, -1e30, Number.NaN]), tensor([1, 1, 1, 1, 1, 1]));
    expect(numbers(y).map((value) => value + 0)).toEqual([Math.fround(1e30), 100, 0, 0, 0, Number.NaN]);
  });

  it("refuses two shapes or dtypes", () => {
    const call = (up: Tensor) => refusal(() => ops.troupe.swiglu(zeros([2, 3]), up))?.message;
    expect(call(zeros([3]))).toContain("one shape and dtype");
    expect(call(zeros([2, 3], { dtype: "bfloat16" }))).toContain("one shape and dtype");
  });
});
