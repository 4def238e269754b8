import { describe, expect, test } from "vitest";
import {
  dematerialize,
  materialize,
  RelativePositionBias,
  relativeBucket,
} from "../../src/compute/nn/index.ts";
import { scope, type Tensor } from "../../src/compute/tensor/index.ts";

const both = { numBuckets: 32, maxDistance: 128, bothWays: true };
const past = { numBuckets: 32, maxDistance: 128, bothWays: false };

describe("T5's relative position bias", () => {
  test("has a bucket for each near distance and logarithmic ones for far distances", () => {
    const at = (distances: number[], buckets: typeof both) =>
      distances.map((d) => relativeBucket(d, buckets));
    expect(at([0, -1, -7, 1, 7], both)).toEqual([0, 1, 7, 17, 23]);
    // 8 · 16^(i/8): the edges of the far buckets; 16, 32 and 64 lie on one, and 127 is the last distance that is told apart.
    expect(at([-8, -11, -12, -15, -16, -32, -64, -90, -91, -127, -128, -5000], both)).toEqual([
      8, 8, 9, 9, 10, 12, 14, 14, 15, 15, 15, 15,
    ]);
    expect(at([0, 3, 500, -1, -15, -16, -64, -127, -5000], past)).toEqual([0, 0, 0, 1, 15, 16, 26, 31, 31]);
  });

  test("gives each score its head's number for the bucket of its distance", () => {
    scope(() => {
      const bias = new RelativePositionBias(3, { numBuckets: 8, maxDistance: 12, bothWays: true });
      materialize(bias, { seed: 1 });
      const values = (x: Tensor) => Array.from(x.contiguous().toTypedArray() as Float32Array);
      const weight = values(bias.weight.tensor);
      const scores = bias.between(4, 9);
      expect(scores.shape).toEqual([1, 3, 4, 9]);
      const expected = [0, 1, 2].flatMap((head) =>
        Array.from({ length: 36 }, (_, place) => {
          const distance = (place % 9) - Math.floor(place / 9);
          return weight[relativeBucket(distance, bias.buckets) * 3 + head];
        }),
      );
      expect(values(scores)).toEqual(expected);
      dematerialize(bias);
    });
  });
});
