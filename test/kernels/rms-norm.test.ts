import { describe, expect, it } from "vitest";
import { ops, setNumThreads, type Tensor, zeros } from "../../src/compute/tensor/index.ts";
import { refusal } from "../tensor/numbers.ts";
import { exact, expectNear, expectSame, floatTypes, gradientsOf, normal, roundingError } from "./inputs.ts";

const eps = 1e-6;
const shapes = [
  [1, 4],
  [3, 5],
  [2, 3, 33],
  [130, 96],
  [2, 1025],
] as const;

function inputs(shape: readonly number[], dtype: (typeof floatTypes)[number]) {
  return {
    x: normal(shape, 1, { dtype }).requiresGrad_(),
    residual: normal(shape, 2, { dtype }).requiresGrad_(),
    weight: normal([shape.at(-1) ?? 0], 3, { dtype }).requiresGrad_(),
    dy: normal(shape, 5, { dtype }),
    dsum: normal(shape, 6, { dtype }),
  };
}

/** By its definition, in the dtype of x. */
function reference(x: Tensor, weight: Tensor): Tensor {
  return x.mul(x.square().mean([-1], true).add(eps).rsqrt()).mul(weight);
}

const cases = shapes.flatMap((shape) => floatTypes.map((dtype) => [shape.join("x"), dtype, shape] as const));

describe("rms_norm", () => {
  it.each(cases)(
    "agrees with its definition in float64 on %s %s, and so do its gradients",
    (_, dtype, shape) => {
      const { x, weight, dy } = inputs(shape, dtype);
      const y = ops.troupe.rmsNorm(x, weight, eps);
      const wide = [x, weight].map(exact) as [Tensor, Tensor];
      const expected = reference(...wide);
      expect(y.dtype).toBe(dtype);
      expectNear(y, expected, roundingError[dtype]);
      const wanted = gradientsOf([expected], wide, [dy.to("float64")]);
      gradientsOf([y], [x, weight], [dy]).forEach((gradient, i) => {
        expectNear(gradient, wanted[i] as Tensor, 4 * roundingError[dtype]); // sums over rows add roundings up
      });
    },
  );

  it.each(cases)(
    "after a residual sum is the sum and its norm on %s %s, with both gradients",
    (_, dtype, shape) => {
      const { x, residual, weight, dy, dsum } = inputs(shape, dtype);
      const [sum, normed] = ops.troupe.addRmsNorm(x, residual, weight, eps);
      expectSame(sum, x.add(residual));
      expectSame(normed, ops.troupe.rmsNorm(sum, weight, eps));
      const wide = [sum, weight].map(exact) as [Tensor, Tensor];
      const wanted = gradientsOf([wide[0], reference(...wide)], wide, [dsum.to("float64"), dy.to("float64")]);
      const [dx, dresidual, dweight] = gradientsOf([sum, normed], [x, residual, weight], [dsum, dy]);
      expectSame(dresidual as Tensor, dx as Tensor);
      [dx, dweight].forEach((gradient, i) => {
        expectNear(gradient as Tensor, wanted[i] as Tensor, 4 * roundingError[dtype]);
      });
      const [alone] = ops.troupe.addRmsNorm(x, residual, weight, eps);
      expectSame(gradientsOf([alone], [x], [dsum])[0] as Tensor, dsum);
    },
  );

  it("takes weights of another dtype, strided rows and no rows", () => {
    const x = normal([6, 4], 1, { dtype: "bfloat16" });
    const strided = ops.troupe.rmsNorm(x.transpose(0, 1), normal([6], 2), eps);
    expectSame(strided, ops.troupe.rmsNorm(x.transpose(0, 1).contiguous(), normal([6], 2), eps));
    expect(ops.troupe.rmsNorm(zeros([0, 6]), zeros([6]), eps).shape).toEqual([0, 6]);
  });

  it("gives gradients of the same bits for every number of threads", () => {
    const [one, two] = [1, 2].map((numThreads) => {
      setNumThreads(numThreads);
      const { x, weight, dy } = inputs([3000, 64], "float32");
      return gradientsOf([ops.troupe.rmsNorm(x, weight, eps)], [x, weight], [dy]);
    }) as [Tensor[], Tensor[]];
    setNumThreads(1);
    one.forEach((gradient, i) => {
      expectSame(two[i] as Tensor, gradient);
    });
  });

  it("refuses weights of another length, a residual of another shape, and other dtypes", () => {
    const x = zeros([3, 4]);
    const messages = [
      () => ops.troupe.rmsNorm(x, zeros([3]), eps),
      () => ops.troupe.rmsNorm(x.to("float64"), zeros([4]), eps),
      () => ops.troupe.addRmsNorm(x, zeros([4]), zeros([4]), eps),
    ].map((call) => refusal(call)?.message);
    expect(messages[0]).toContain("weight to have");
    expect(messages[1]).toContain("x to be float32, bfloat16 or float16");
    expect(messages[2]).toContain("residual to have the shape and dtype of x");
  });
});
