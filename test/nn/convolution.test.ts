import { describe, expect, test } from "vitest";
import {
  Conv1d,
  Conv2d,
  dematerialize,
  GroupNorm,
  materialize,
  WeightNormConv1d,
} from "../../src/compute/nn/index.ts";
import { empty, ops, scope, type Tensor } from "../../src/compute/tensor/index.ts";
import { refusal } from "../tensor/numbers.ts";

const values = (x: Tensor) => Array.from(x.to("float64").contiguous().toTypedArray() as Float64Array);
const draw = (shape: number[]) => ops.troupe.philoxNormal_(empty(shape), 0, 1, 1, 0, 0);

function expectClose(actual: Tensor, expected: readonly number[], digits = 5): void {
  expect(actual.numel).toBe(expected.length);
  values(actual).forEach(
    (value, index) => void expect(value).toBeCloseTo(expected[index] ?? Number.NaN, digits),
  );
}

/** A convolution of [B, C, H, W] by loops over numbers. */
function byLoops(
  x: Tensor,
  weight: Tensor,
  bias: readonly number[],
  how: { stride: number[]; padding: number[]; dilation: number[]; groups: number },
): number[] {
  const [B = 0, C = 0, H = 0, W = 0] = x.shape;
  const [O = 0, I = 0, Kh = 0, Kw = 0] = weight.shape;
  const [xs, ws] = [values(x), values(weight)];
  const [sh = 1, sw = 1] = how.stride;
  const [ph = 0, pw = 0] = how.padding;
  const [dh = 1, dw = 1] = how.dilation;
  const outH = Math.floor((H + 2 * ph - dh * (Kh - 1) - 1) / sh) + 1;
  const outW = Math.floor((W + 2 * pw - dw * (Kw - 1) - 1) / sw) + 1;
  const out: number[] = [];
  for (let b = 0; b < B; b++)
    for (let o = 0; o < O; o++)
      for (let y = 0; y < outH; y++)
        for (let z = 0; z < outW; z++) {
          let sum = bias[o] ?? 0;
          for (let i = 0; i < I; i++)
            for (let m = 0; m < Kh; m++)
              for (let n = 0; n < Kw; n++) {
                const channel = Math.floor(o / (O / how.groups)) * (C / how.groups) + i;
                const [row, column] = [y * sh - ph + m * dh, z * sw - pw + n * dw];
                if (row < 0 || row >= H || column < 0 || column >= W) continue;
                sum +=
                  (xs[((b * C + channel) * H + row) * W + column] ?? 0) *
                  (ws[((o * I + i) * Kh + m) * Kw + n] ?? 0);
              }
          out.push(sum);
        }
  return out;
}

describe("convolutions", () => {
  test("equal their definition over a line and over a picture, in float32 and bfloat16", () => {
    scope(() => {
      const along = new Conv1d(4, 6, 3, { stride: 2, padding: 1, dilation: 2, groups: 2 });
      const over = new Conv2d(4, 2, [2, 3], { stride: [1, 2], padding: [0, 1], bias: false });
      const how = { stride: [1, 2], padding: [0, 1], dilation: [1, 2], groups: 2 };
      for (const [dtype, digits] of [
        ["float32", 5],
        ["bfloat16", 1],
      ] as const) {
        for (const module of [along, over]) materialize(module, { seed: 5, dtype });
        const line = draw([2, 4, 9]).to(dtype);
        const expected = byLoops(
          line.unsqueeze(2),
          along.weight.tensor.unsqueeze(2),
          values(along.bias?.tensor as Tensor),
          how,
        );
        expectClose(along.forward(line), expected, digits);
        const picture = draw([2, 4, 3, 7]).to(dtype);
        expectClose(
          over.forward(picture),
          byLoops(picture, over.weight.tensor, [], { ...how, dilation: [1, 1], groups: 1 }),
          digits,
        );
        for (const module of [along, over]) dematerialize(module);
      }
    });
  });

  test("start a weight by magnitude and direction as the direction itself, however few elements are asked for", () => {
    scope(() => {
      const conv = new WeightNormConv1d(4, 6, 3, 2, { groups: 2 });
      expect([...conv.namedParameters().keys()]).toEqual([
        "bias",
        "parametrizations.weight.original0",
        "parametrizations.weight.original1",
      ]);
      materialize(conv, { seed: 5 });
      const { original1 } = conv.parametrizations.weight;
      expectClose(conv.parametrizations.weight.forward(), values(original1.tensor), 6);
      dematerialize(conv);
    });
  });

  test("and group norm have shapes where their inputs have no memory", () => {
    scope(() => {
      const parts = {
        along: new Conv1d(4, 6, 3, { stride: 2 }),
        over: new Conv2d(4, 2, 2),
        norm: new GroupNorm(2, 4),
      };
      for (const module of Object.values(parts)) materialize(module, { seed: 5 });
      const shape = (x: Tensor) => [x.device, ...x.shape];
      expect(shape(parts.along.forward(ops.troupe.placeholder([2, 4, 9], "float32")))).toEqual([
        "meta",
        2,
        6,
        4,
      ]);
      expect(shape(parts.over.forward(ops.troupe.placeholder([2, 4, 3, 5], "float32")))).toEqual([
        "meta",
        2,
        2,
        2,
        4,
      ]);
      expect(shape(parts.norm.forward(ops.troupe.placeholder([2, 4, 3], "float32")))).toEqual([
        "meta",
        2,
        4,
        3,
      ]);
      for (const module of Object.values(parts)) dematerialize(module);
    });
  });
});

describe("group norm", () => {
  test("leaves each group of each sample with mean 0 and variance 1", () => {
    scope(() => {
      const norm = new GroupNorm(2, 6);
      materialize(norm, { seed: 5 });
      const out = norm.forward(draw([3, 6, 5]).mul(4).add(2)).view([6, 15]);
      expectClose(out.mean([1]), Array(6).fill(0), 5);
      expectClose(out.square().mean([1]), Array(6).fill(1), 4);
      dematerialize(norm);
      expect(refusal(() => new GroupNorm(4, 6))?.message).toContain("groups that divide 6 channels");
    });
  });
});
