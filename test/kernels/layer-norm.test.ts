import { describe, expect, it } from "vitest";
import { ops, setNumThreads, type Tensor, zeros } from "../../src/compute/tensor/index.ts";
import { refusal } from "../tensor/numbers.ts";
import { exact, expectNear, expectSame, floatTypes, gradientsOf, normal, roundingError } from "./inputs.ts";

const eps = 1e-5;
const shapes = [
  [1, 4],
  [3, 5],
  [7, 31],
  [2, 3, 33],
  [130, 96],
  [2, 1025],
] as const;

function inputs(shape: readonly number[], dtype: (typeof floatTypes)[number]) {
  const dim = shape.at(-1) ?? 0;
  return {
    x: normal(shape, 1, { dtype }).requiresGrad_(),
    residual: normal(shape, 2, { dtype }).requiresGrad_(),
    weight: normal([dim], 3, { dtype }).requiresGrad_(),
    bias: normal([dim], 4, { dtype }).requiresGrad_(),
    dy: normal(shape, 5, { dtype }),
    dsum: normal(shape, 6, { dtype }),
  };
}

const cases = shapes.flatMap((shape) => floatTypes.map((dtype) => [shape.join("x"), dtype, shape] as const));

/** Small rows make 1/σ large, and sums over rows add roundings up. */
const gradientError = (dtype: (typeof floatTypes)[number]) => 4 * roundingError[dtype];

describe("layer_norm", () => {
  it.each(cases)("agrees with libtorch's in float64 on %s %s, and so do its gradients", (_, dtype, shape) => {
    const { x, weight, bias, dy } = inputs(shape, dtype);
    const y = ops.troupe.layerNorm(x, weight, bias, eps);
    const reference = [x, weight, bias].map(exact) as [Tensor, Tensor, Tensor];
    const expected = ops.layerNorm(reference[0], [shape.at(-1) ?? 0], reference[1], reference[2], eps);
    expect(y.dtype).toBe(dtype);
    expectNear(y, expected, roundingError[dtype]);
    const wanted = gradientsOf([expected], reference, [dy.to("float64")]);
    gradientsOf([y], [x, weight, bias], [dy]).forEach((gradient, i) => {
      expectNear(gradient, wanted[i] as Tensor, gradientError(dtype));
    });
  });

  it("takes no bias, weights of another dtype, strided rows and no rows", () => {
    const x = normal([6, 4], 1, { dtype: "bfloat16" });
    const weight = normal([6], 2);
    const strided = ops.troupe.layerNorm(x.transpose(0, 1), weight, undefined, eps);
    expectSame(strided, ops.troupe.layerNorm(x.transpose(0, 1).contiguous(), weight, zeros([6]), eps));
    expect(strided.dtype).toBe("bfloat16");
    expect(ops.troupe.layerNorm(zeros([0, 6]), weight, undefined, eps).shape).toEqual([0, 6]);
  });

  it("keeps its digits far from zero", () => {
    const x = normal([4, 256], 1).add(1000);
    const y = ops.troupe.layerNorm(x, zeros([256]).add(1), undefined, eps);
    expectNear(y, ops.layerNorm(x.to("float64"), [256], undefined, undefined, eps), 2e-4);
  });

  it("gives gradients of the same bits for every number of threads", () => {
    const [one, two] = [1, 2].map((numThreads) => {
      setNumThreads(numThreads);
      const { x, weight, bias, dy } = inputs([3000, 64], "float32");
      return gradientsOf([ops.troupe.layerNorm(x, weight, bias, eps)], [x, weight, bias], [dy]);
    }) as [Tensor[], Tensor[]];
    setNumThreads(1);
    one.forEach((gradient, i) => {
      expectSame(two[i] as Tensor, gradient);
    });
  });

  it("refuses weights of another length and other dtypes", () => {
    const x = zeros([3, 4]);
    expect(refusal(() => ops.troupe.layerNorm(x, zeros([3]), undefined, eps))?.message).toContain(
      "weight to have",
    );
    expect(refusal(() => ops.troupe.layerNorm(x, zeros([4]), zeros([3]), eps))?.message).toContain(
      "bias to have",
    );
    const wide = () => ops.troupe.layerNorm(x.to("float64"), zeros([4]), undefined, eps);
    expect(refusal(wide)?.message).toContain("x to be float32, bfloat16 or float16");
  });
});

describe("add_layer_norm", () => {
  it.each(cases)("agrees with addition and layer norm in float64 on %s %s", (_, dtype, shape) => {
    const { x, residual, weight, bias, dy, dsum } = inputs(shape, dtype);
    const [sum, normed] = ops.troupe.addLayerNorm(x, residual, weight, bias, eps);
    expectSame(sum, x.add(residual));
    expectSame(normed, ops.troupe.layerNorm(sum, weight, bias, eps));
    const reference = [sum, weight, bias].map(exact) as [Tensor, Tensor, Tensor];
    const expected = ops.layerNorm(reference[0], [shape.at(-1) ?? 0], reference[1], reference[2], eps);
    const wanted = gradientsOf([reference[0], expected], reference, [dsum.to("float64"), dy.to("float64")]);
    const [dx, dresidual, ...rest] = gradientsOf([sum, normed], [x, residual, weight, bias], [dsum, dy]);
    expectSame(dresidual as Tensor, dx as Tensor);
    [dx as Tensor, ...rest].forEach((gradient, i) => {
      expectNear(gradient, wanted[i] as Tensor, gradientError(dtype));
    });
  });

  it("passes the gradient of the sum alone, and of the norm alone", () => {
    const { x, residual, weight, bias, dy, dsum } = inputs([4, 6], "float32");
    const [sum] = ops.troupe.addLayerNorm(x, residual, weight, bias, eps);
    const [dx, dresidual] = gradientsOf([sum], [x, residual], [dsum]);
    expectSame(dx as Tensor, dsum);
    expectSame(dresidual as Tensor, dsum);
    const [, normed] = ops.troupe.addLayerNorm(x, residual, weight, bias, eps);
    const plain = ops.troupe.layerNorm(x.add(residual), weight, bias, eps);
    expectSame(gradientsOf([normed], [x], [dy])[0] as Tensor, gradientsOf([plain], [x], [dy])[0] as Tensor);
  });

  it("refuses a residual of another shape or dtype", () => {
    const call = (residual: Tensor) =>
      ops.troupe.addLayerNorm(zeros([3, 4]), residual, zeros([4]), undefined, eps);
    expect(refusal(() => call(zeros([4])))?.message).toContain("residual to have the shape and dtype of x");
    expect(refusal(() => call(zeros([3, 4]).to("bfloat16")))?.message).toContain("residual to have");
  });
});
