import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type Buckets,
  bucketLimit,
  bucketsOf,
  joinBuckets,
  scope,
  tensor,
} from "../../src/compute/tensor/index.ts";

const of = (values: readonly number[]): Buckets =>
  scope(() => bucketsOf(tensor([...values], { dtype: "float32" })));

const floats = fc.array(fc.float(), { maxLength: 40 });

describe("buckets", () => {
  it("hold every finite value between the limits of its bucket, and count the others", () => {
    fc.assert(
      fc.property(floats, (values) => {
        const finite = values.filter(Number.isFinite);
        const { indices, counts, numNotFinite, statistics } = of(values);
        expect(numNotFinite).toBe(values.length - finite.length);
        expect(statistics.count).toBe(finite.length);
        for (const [place, index] of indices.entries()) {
          const [low, high] = [bucketLimit(index - 1), bucketLimit(index)];
          expect(low).toBeLessThan(high);
          // Buckets are closed on the side of zero, and each zero is on its own side.
          const inside = finite.filter((value) =>
            high > 0
              ? value >= low && value < high && !Object.is(value, -0)
              : value > low && value <= high && !Object.is(value, 0),
          );
          expect(inside.length).toBe(counts[place]);
        }
        expect(counts.reduce((sum, count) => sum + count, 0)).toBe(finite.length);
      }),
    );
  });

  it("of parts join to those of the full tensor", () => {
    fc.assert(
      fc.property(fc.array(floats, { maxLength: 4 }), (parts) => {
        const { indices, counts, numNotFinite } = joinBuckets(parts.map(of));
        expect({ indices, counts, numNotFinite }).toEqual(
          (({ indices, counts, numNotFinite }) => ({ indices, counts, numNotFinite }))(of(parts.flat())),
        );
      }),
    );
  });

  it("grow by a quarter of a power of two", () => {
    const one = of([1]).indices[0] as number;
    expect([-1, 0, 1, 2, 3].map((step) => bucketLimit(one + step))).toEqual([1, 1.25, 1.5, 1.75, 2]);
    const minusOne = of([-1]).indices[0] as number;
    expect([-1, 0, 1].map((step) => bucketLimit(minusOne + step))).toEqual([-1.25, -1, -0.875]);
  });

  it("of half precision and of more values than are looked at at once", () => {
    scope(() => {
      const ones = tensor(1).to("bfloat16").expand([1_500_000]).contiguous();
      expect(bucketsOf(ones)).toMatchObject({ counts: [1_500_000], statistics: { mean: 1, max: 1 } });
    });
  });
});
