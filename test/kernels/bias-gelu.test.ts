import { describe, expect, it } from "vitest";
import { ops, setNumThreads, type Tensor, tensor, zeros } from "../../src/compute/tensor/index.ts";
import { numbers, refusal } from "../tensor/numbers.ts";
import { exact, expectNear, expectSame, floatTypes, gradientsOf, normal, roundingError } from "./inputs.ts";

const shapes = [
  [1, 1],
  [3, 5],
  [2, 3, 33],
  [130, 96],
  [2, 1025],
] as const;
const forms = ["tanh", "none"] as const;
const cases = shapes.flatMap((shape) =>
  floatTypes.flatMap((dtype) => forms.map((form) => [shape.join("x"), dtype, form, shape] as const)),
);

describe("bias_gelu", () => {
  it.each(cases)(
    "agrees with libtorch's GELU in float64 on %s %s, approximated by %s, and so do its gradients",
    (_, dtype, form, shape) => {
      const x = normal(shape, 1, { dtype, std: 3 }).requiresGrad_();
      const bias = normal([shape.at(-1) ?? 0], 2, { dtype }).requiresGrad_();
      const dy = normal(shape, 3, { dtype });
      const y = ops.troupe.biasGelu(x, bias, form);
      const wide = [exact(x), exact(bias)] as const;
      const expected = ops.gelu(wide[0].add(wide[1]), form);
      expect(y.dtype).toBe(dtype);
      expectNear(y, expected, roundingError[dtype]);
      const wanted = gradientsOf([expected], wide, [dy.to("float64")]);
      gradientsOf([y], [x, bias], [dy]).forEach((gradient, i) => {
        expectNear(gradient, wanted[i] as Tensor, 2 * roundingError[dtype]);
      });
    },
  );

  it.each(forms)("goes to x on the right and 0 on the left, and passes NaN on: %s", (form) => {
    const y = ops.troupe.biasGelu(tensor([1e30, 100, 0, -100, Number.NaN]), zeros([5]), form);
    expect(numbers(y).map((value) => value + 0)).toEqual([Math.fround(1e30), 100, 0, 0, Number.NaN]);
  });

  it("takes no rows and gives gradients of the same bits for every number of threads", () => {
    expect(ops.troupe.biasGelu(zeros([0, 4]), zeros([4])).shape).toEqual([0, 4]);
    const [one, two] = [1, 2].map((numThreads) => {
      setNumThreads(numThreads);
      const bias = normal([33], 2).requiresGrad_();
      const x = normal([3000, 33], 1);
      return gradientsOf([ops.troupe.biasGelu(x, bias, "none")], [bias], [x])[0];
    }) as [Tensor, Tensor];
    setNumThreads(1);
    expectSame(two, one);
  });

  it("refuses a bias of another length, and another approximation", () => {
    expect(refusal(() => ops.troupe.biasGelu(zeros([3, 4]), zeros([3])))?.message).toContain(
      "one element per feature",
    );
    expect(refusal(() => ops.troupe.biasGelu(zeros([3, 4]), zeros([4]), "sigmoid"))?.message).toContain(
      "approximate to be tanh or none, got sigmoid",
    );
  });
});
