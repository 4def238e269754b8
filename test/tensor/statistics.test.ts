import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  joinStatistics,
  NO_VALUES,
  type Statistics,
  scope,
  standardDeviation,
  statisticsOf,
  tensor,
} from "../../src/compute/tensor/index.ts";

const of = (values: readonly number[]): Statistics =>
  scope(() => statisticsOf(tensor([...values], { dtype: "float64" })));

const someValues = fc.array(fc.double({ min: -1e3, max: 1e3, noNaN: true }), { minLength: 1, maxLength: 30 });

describe("statistics", () => {
  it("of parts join to those of the full tensor, whatever the cut", () => {
    fc.assert(
      fc.property(fc.array(someValues, { minLength: 1, maxLength: 5 }), (parts) => {
        const whole = of(parts.flat());
        const joined = joinStatistics([NO_VALUES, ...parts.map(of)]);
        expect(joined).toMatchObject({ count: whole.count, min: whole.min, max: whole.max });
        // Magnitudes up to 1e3, summed in float64 in another order.
        expect(joined.mean).toBeCloseTo(whole.mean, 8);
        expect(joined.squares / whole.count).toBeCloseTo(whole.squares / whole.count, 6);
      }),
    );
  });

  it("keep the deviation of values far from zero", () => {
    const far = joinStatistics([of([1e9, 1e9 + 2]), of([1e9 + 4])]);
    expect(far.mean).toBe(1e9 + 2);
    expect(standardDeviation(far)).toBe(2);
  });

  it("say so when a value is not a number", () => {
    const joined = joinStatistics([of([1]), of([Number.NaN, 2])]);
    expect([joined.mean, joined.min, joined.max]).toEqual([Number.NaN, Number.NaN, Number.NaN]);
  });

  it("have torch's unbiased deviation, and none for a single value", () => {
    expect(standardDeviation(of([1, 2, 3, 4]))).toBeCloseTo(Math.sqrt(5 / 3), 12);
    expect(standardDeviation(of([1]))).toBeNaN();
  });
});
