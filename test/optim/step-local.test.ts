import { afterEach, describe, expect, test } from "vitest";
import { dematerialize, fromValues, Linear, materialize, Parameter } from "../../src/compute/nn/index.ts";
import {
  AdamW,
  clipGradNorm,
  type LocalState,
  releaseState,
  SGD,
  stepLocal,
} from "../../src/compute/optim/index.ts";
import { backward, keep, scope, type Tensor, tensor } from "../../src/compute/tensor/index.ts";

describe("the local AdamW step", () => {
  const moments: LocalState = new Map();
  afterEach(() => releaseState(moments));

  test("makes the values computed by hand, for decoupled decay and bias correction", () => {
    const parameter = new Parameter([1, 1], fromValues([1]));
    const memory = keep(tensor([[1]], { dtype: "float32" })).requiresGrad_();
    parameter.bind(memory);
    const parameters = new Map([["p", parameter]]);
    const spec = new AdamW(parameters, { lr: 0.01, betas: [0.9, 0.999], eps: 1e-8, weightDecay: 0.1 });
    const values = [0.1, -0.2, 0.3, 0.05, 0].map((gradient, index) => {
      scope(() => backward([parameter.tensor.mul(gradient).sum()]));
      stepLocal(parameters, spec, moments, index + 1);
      return memory.item();
    });
    const expected = [0.9889999628, 0.9916719794, 0.9872466922, 0.9827015996, 0.9787116647];
    // The expected values saw their gradients rounded to float16.
    values.forEach((value, index) => void expect(value).toBeCloseTo(expected[index] ?? Number.NaN, 5));
    expect(memory.grad?.item()).toBe(0);
    memory.dispose();
  });

  test("clips, gives each group its rate and decay, and leaves parameters without gradient alone", () => {
    const layer = new Linear(2, 2);
    materialize(layer, { seed: 1 });
    const parameters = layer.namedParameters();
    const spec = new AdamW(parameters, { lr: 0.1, weightDecay: 0, groups: [{ match: /bias/, lrFactor: 0 }] });
    const before = layer.weight.tensor.toTypedArray();
    const bias = layer.bias?.tensor.toTypedArray();
    expect(stepLocal(parameters, spec, moments, 1)).toBe(0);
    expect(layer.weight.tensor.toTypedArray()).toEqual(before);
    scope(() => backward([layer.forward(tensor([[3, 4]], { dtype: "float32" })).sum()]));
    // Gradient of the weight is [[3, 4], [3, 4]], of the bias [1, 1].
    expect(stepLocal(parameters, spec, moments, 1, { clipNorm: 1, lr: 0.01 })).toBeCloseTo(Math.sqrt(52), 6);
    const moved = Array.from(
      layer.weight.tensor.toTypedArray() as Float32Array,
      (x, i) => x - Number(before[i]),
    );
    for (const difference of moved) expect(difference).toBeCloseTo(-0.01, 5);
    expect(layer.bias?.tensor.toTypedArray()).toEqual(bias);
    dematerialize(layer);
  });
});

describe("the local step of an optimizer with a largest norm of its own", () => {
  test("clips its parameters by it, whatever the others' gradients and the given norm are", () => {
    const layer = new Linear(1, 2, { init: fromValues([0, 0]), biasInit: fromValues([0, 0]) });
    materialize(layer, { seed: 1 });
    const parameters = layer.namedParameters();
    const moved = ({ tensor: values }: Parameter) =>
      Array.from(values.toTypedArray() as Float32Array, (each) => Number(each.toFixed(4)));
    scope(() =>
      backward([
        layer
          .forward(tensor([[1]], { dtype: "float32" }))
          .mul(tensor([[3, 4]]))
          .sum(),
      ]),
    );
    const own = new SGD(parameters, { lr: 1, only: /weight/, clipNorm: 1 });
    expect(stepLocal(parameters, own, new Map(), 1, { clipNorm: 0.1 })).toBeCloseTo(5, 6);
    expect(moved(layer.weight)).toEqual([-0.6, -0.8]);
    stepLocal(parameters, new SGD(parameters, { lr: 1, only: /bias/ }), new Map(), 1);
    expect(moved(layer.bias as Parameter)).toEqual([-3, -4]);
    dematerialize(layer);
  });
});

describe("clipping", () => {
  const gradients = () =>
    [tensor([3, 0], { dtype: "float32" }), tensor([[4]], { dtype: "float32" })] as Tensor[];

  test("brings the global norm down to the limit and tells what it was", () => {
    scope(() => {
      const scaled = gradients();
      expect(clipGradNorm(scaled, 1)).toBe(5);
      expect(clipGradNorm(scaled, Number.POSITIVE_INFINITY)).toBeCloseTo(1, 5);
    });
  });

  test("leaves gradients below the limit as they are", () => {
    scope(() => {
      const kept = gradients();
      clipGradNorm(kept, 5.1);
      expect(kept[0]?.toTypedArray()).toEqual(Float32Array.from([3, 0]));
    });
  });
});
