import { describe, expect, it } from "vitest";
import { ones } from "../../src/compute/nn/index.ts";
import { layoutBlock, replicas } from "../../src/compute/parallel/index.ts";
import { GradientBuckets } from "../../src/compute/parallel/rank/gradient-buckets.ts";
import { hold, liveTensors, scope, type Tensor, tensor } from "../../src/compute/tensor/index.ts";

const specs = ["embedding", "middle", "head"].map((name) => ({
  name,
  shape: [3],
  dtype: "float32" as const,
  init: ones,
}));
const layout = layoutBlock(0, "root", 3, specs, replicas(2));

/** The gradients of a micro-batch with these contributions, one after the other; numbers or null for each parameter. */
function collected(...contributions: readonly (readonly (readonly number[] | null)[])[]): number[] {
  const buckets = new GradientBuckets([layout], "float32");
  // Backward of a block ends before the next one's begins, and takes with it what it has made.
  for (const given of contributions)
    scope(() =>
      buckets.contribute(
        0,
        given.map((values) => values && tensor(values, { dtype: "float32" })),
      ),
    );
  buckets.endMicroBatch(0);
  const sum: Tensor = buckets.take(0);
  const numbers = Array.from(sum.toTypedArray() as Float32Array);
  sum.dispose();
  return numbers;
}

describe("GradientBuckets", () => {
  const a = [1, -0, 3];
  const b = [0.1, 0.2, 0.3];
  const c = [7, 8, 9];

  it("gradients that arrive in parts equal those that arrive at once", () => {
    const whole = collected([a, b, c]);
    expect(collected([null, null, c], [a, null, null], [null, b, null])).toEqual(whole);
    expect(collected([null, null, null], [a, b, c])).toEqual(whole);
  });

  it("gradients that arrive twice are added in their order of arrival", () => {
    const once = [1, 1, 1];
    const tiny = [2 ** -24, 2 ** -24, 2 ** -24];
    const sums = collected([once, null, null], [tiny, b, null], [tiny, null, c]);
    const sum = Math.fround(Math.fround(1 + 2 ** -24) + 2 ** -24);
    expect(sums.slice(0, 3)).toEqual([sum, sum, sum]);
    expect(sums).toEqual(collected([[sum, sum, sum], b, c]));
  });

  it("has zeros where nothing came", () => {
    const { offset = 0 } = layout.parameters[1] ?? {};
    const sums = collected([a, null, null], [null, null, c]);
    expect(sums.slice(offset, offset + 3)).toEqual([0, 0, 0]);
  });

  it("an abandoned pass leaves no gradients", () => {
    const before = liveTensors();
    const buckets = new GradientBuckets([layout], "float32");
    const gradient = hold(() => tensor([1, 2, 3], { dtype: "float32" }));
    buckets.contribute(0, [gradient, null, null]);
    gradient.dispose();
    buckets.clear();
    expect(liveTensors()).toBe(before);
  });
});
