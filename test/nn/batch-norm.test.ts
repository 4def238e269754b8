import { describe, expect, test } from "vitest";
import {
  BatchNorm1d,
  BatchNorm2d,
  dematerialize,
  ModuleBuffer,
  materialize,
  zeros,
} from "../../src/compute/nn/index.ts";
import { empty, ops, scope, type Tensor, tensor } from "../../src/compute/tensor/index.ts";
import { expectGradients } from "./finite-differences.ts";

const float64 = { dtype: "float64" } as const;

let stream = 0;
const random = (shape: number[]) =>
  ops.troupe.philoxNormal_(empty(shape), 0.5, 2, 23, stream++, 0).to("float64");

const valuesOf = (value: Tensor) => [...value.toTypedArray()].map(Number);

/** By channel, the values of an input of shape [B, C, …]. */
function byChannel(x: Tensor): number[][] {
  const [batch = 0, channels = 0, ...rest] = x.shape;
  const inner = rest.reduce((product, size) => product * size, 1);
  const values = valuesOf(x);
  return Array.from({ length: channels }, (_, channel) =>
    Array.from({ length: batch }, (_, row) => (row * channels + channel) * inner).flatMap((begin) =>
      values.slice(begin, begin + inner),
    ),
  );
}

const meanOf = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
const squaresOf = (values: readonly number[]) => {
  const mean = meanOf(values);
  return values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
};

function expectClose(got: Tensor, expected: readonly number[]): void {
  const values = valuesOf(got);
  expect(values).toHaveLength(expected.length);
  // Sums in another order, in float64.
  values.forEach((value, index) => {
    expect(value).toBeCloseTo(expected[index] ?? Number.NaN, 12);
  });
}

const cases = [
  { make: () => new BatchNorm1d(3), shape: [5, 3] },
  { make: () => new BatchNorm1d(3, { momentum: 0.3, eps: 0.1 }), shape: [4, 3, 2] },
  { make: () => new BatchNorm2d(2, { momentum: null }), shape: [3, 2, 2, 3] },
];

describe("batch normalisation", () => {
  test.each(cases)("has the gradients of central differences: $shape", ({ make, shape }) => {
    scope(() => {
      const norm = make();
      materialize(norm, { seed: 5, ...float64 });
      const x = random(shape).requiresGrad_();
      const { weight, bias } = norm;
      const inputs = { x, weight: weight.tensor, bias: bias.tensor };
      const loss = () => {
        const out = norm.forward(x);
        const weights = Array.from({ length: out.numel }, (_, index) => Math.sin(1 + index));
        return out.mul(tensor(weights, float64).view(out.shape)).sum();
      };
      expectGradients(loss, inputs, { step: 1e-5, tolerance: 1e-7 });
      norm.eval();
      for (const input of Object.values(inputs)) input.grad?.zero_();
      expectGradients(loss, inputs, { step: 1e-5, tolerance: 1e-7 });
      dematerialize(norm);
    });
  });

  test.each(cases)("computes and averages by torch's formulas: $shape", ({ make, shape }) => {
    scope(() => {
      const norm = make();
      materialize(norm, { seed: 5, ...float64 });
      const channels = shape[1] ?? 0;
      let averages = Array.from({ length: channels }, () => ({ mean: 0, variance: 1 }));
      for (let count = 1; count <= 3; count++) {
        const x = random(shape);
        const out = norm.forward(x);
        const seen = byChannel(x);
        const momentum = norm.momentum ?? 1 / count;
        averages = averages.map(({ mean, variance }, channel) => {
          const values = seen[channel] as number[];
          const unbiased = squaresOf(values) / (values.length - 1);
          return {
            mean: (1 - momentum) * mean + momentum * meanOf(values),
            variance: (1 - momentum) * variance + momentum * unbiased,
          };
        });
        byChannel(out).forEach((normed, channel) => {
          const values = seen[channel] as number[];
          const deviation = Math.sqrt(squaresOf(values) / values.length + norm.eps);
          expectClose(
            tensor(normed, float64),
            values.map((value) => (value - meanOf(values)) / deviation),
          );
        });
        expectClose(
          norm.running_mean.tensor,
          averages.map(({ mean }) => mean),
        );
        expectClose(
          norm.running_var.tensor,
          averages.map(({ variance }) => variance),
        );
        expect(norm.num_batches_tracked.tensor.item()).toBe(count);
      }
      norm.eval();
      const x = random(shape);
      byChannel(norm.forward(x)).forEach((normed, channel) => {
        const { mean, variance } = averages[channel] as { mean: number; variance: number };
        const expected = byChannel(x)[channel]?.map(
          (value) => (value - mean) / Math.sqrt(variance + norm.eps),
        );
        expectClose(tensor(normed, float64), expected ?? []);
      });
      expect(norm.num_batches_tracked.tensor.item()).toBe(3);
      dematerialize(norm);
    });
  });

  test("names its input if that cannot be normalised", () => {
    scope(() => {
      const norm = new BatchNorm1d(3);
      materialize(norm, { seed: 5 });
      for (const shape of [
        [4, 2],
        [2, 3, 4, 4],
        [1, 3],
      ]) {
        const refused = expect(() => norm.forward(empty(shape)), String(shape));
        refused.toThrow(expect.objectContaining({ code: "BATCH_NORM", fields: { shape, channels: 3 } }));
      }
      norm.eval();
      expect(norm.forward(empty([1, 3])).shape).toEqual([1, 3]);
      dematerialize(norm);
    });
  });
});

test("a buffer is part of a module's state and none of its parameters, and takes values of its own shape alone", () => {
  const norm = new BatchNorm2d(4);
  expect([...norm.namedParameters().keys()]).toEqual(["weight", "bias"]);
  expect([...norm.namedBuffers().keys()]).toEqual(["running_mean", "running_var", "num_batches_tracked"]);
  expect([...norm.namedState().keys()]).toHaveLength(5);
  expect(norm.numParameters).toBe(8);
  const buffer = new ModuleBuffer([2], zeros);
  scope(() => {
    const refused = expect(() => buffer.write(tensor([1, 2, 3])));
    refused.toThrow("[ModuleBuffer.write] expected a tensor of shape [2], got one of shape [3]");
  });
});
