import { describe, expect, test } from "vitest";
import { bindRandomness, Dropout, ModuleList, Randomness } from "../../src/compute/nn/index.ts";
import { backward, ones, scope } from "../../src/compute/tensor/index.ts";

function bound(p = 0.25) {
  const [first, second] = [new Dropout(p), new Dropout(p)];
  const randomness = new Randomness(9);
  bindRandomness(new ModuleList([first, second]), randomness);
  const mask = (dropout = first) =>
    scope(() => Array.from(dropout.forward(ones([40, 100])).toTypedArray() as Float32Array));
  return { first, second, randomness, mask };
}

describe("dropout", () => {
  test("zeroes about a share p and scales what is left by 1 / (1 - p)", () => {
    const values = bound().mask();
    const numZeros = values.filter((value) => value === 0).length;
    expect(numZeros / values.length).toBeCloseTo(0.25, 1);
    expect(new Set(values)).toEqual(new Set([0, Math.fround(4 / 3)]));
  });

  test("draws the same at the same step and micro-batch, and otherwise not", () => {
    const { randomness, mask } = bound();
    const first = mask();
    randomness.restart();
    expect(mask()).toEqual(first);
    randomness.step = 1;
    expect(mask()).not.toEqual(first);
    randomness.step = 0;
    randomness.microBatch = 1;
    expect(mask()).not.toEqual(first);
    randomness.microBatch = 0;
    expect(mask()).toEqual(first);
  });

  test("draws a mask of its own in each call of one forward, and the same ones when it runs again", () => {
    const { randomness, mask } = bound();
    const both = randomness.drawnOnce(() => [mask(), mask()]);
    const before = mask();
    const [second, third] = both() as [number[], number[]];
    expect(new Set([before, second, third].map(String)).size).toBe(3);
    expect(both()).toEqual([second, third]);
    const fourth = mask();
    expect([before, second, third].map(String)).not.toContain(String(fourth));
    randomness.restart();
    expect(mask()).toEqual(before);
  });

  test("draws otherwise in every module", () => {
    const { second, mask } = bound();
    expect(mask(second)).not.toEqual(mask());
  });

  test.each([0, 1, 2])("masks a piece along dim %i as the full tensor is masked there", (dim) => {
    const { first, randomness } = bound();
    scope(() => {
      const whole = first.forward(ones([4, 6, 8]));
      const size = (whole.shape[dim] ?? 0) / 2;
      for (const index of [0, 1]) {
        first.split = { dim, index, count: 2 };
        const piece = whole.narrow(dim, index * size, size);
        randomness.restart();
        expect(first.forward(ones(piece.shape)).toTypedArray()).toEqual(piece.contiguous().toTypedArray());
      }
    });
  });

  test("lets gradients through where it let values through", () => {
    scope(() => {
      const { first } = bound();
      const x = ones([40, 100]).requiresGrad_();
      const out = first.forward(x);
      backward([out.sum()]);
      expect(x.grad?.toTypedArray()).toEqual(out.detach().toTypedArray());
    });
  });

  test("changes nothing in evaluation or at p = 0", () => {
    scope(() => {
      const x = ones([3]);
      expect(bound().first.eval().forward(x)).toBe(x);
      expect(new Dropout(0).forward(x)).toBe(x);
    });
  });

  test("refuses to draw from nothing, and probabilities that are none", () => {
    scope(() => {
      const x = ones([3]);
      expect(() => new Dropout(0.1).forward(x)).toThrow(
        expect.objectContaining({ code: "RANDOMNESS_UNBOUND" }),
      );
    });
    for (const p of [-0.1, 1, Number.NaN]) {
      expect(() => new Dropout(p)).toThrow(expect.objectContaining({ code: "MODULE_ARGUMENT" }));
    }
  });
});
