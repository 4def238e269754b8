import { describe, expect, it } from "vitest";
import { ones } from "../../src/compute/nn/index.ts";
import { layoutBlock, replicas } from "../../src/compute/parallel/index.ts";
import { GradientBuckets } from "../../src/compute/parallel/rank/gradient-buckets.ts";
import {
  arange,
  grad,
  hold,
  liveTensors,
  ops,
  scope,
  type Tensor,
  tensor,
} from "../../src/compute/tensor/index.ts";
import { normal } from "../kernels/inputs.ts";
import { numbers } from "../tensor/numbers.ts";

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

  it("gradients that were computed in their places stay there", () => {
    const expected = collected([a, b, c]);
    const buckets = new GradientBuckets([layout], "float32");
    scope(() => {
      const flat = buckets.open(0) as Tensor;
      expect(buckets.open(0)).toBe(flat);
      flat.fill_(9);
      const placed = flat.narrow(0, layout.parameters[1]?.offset ?? 0, 3);
      placed.copy_(tensor(b, { dtype: "float32" }));
      buckets.contribute(0, [tensor(a, { dtype: "float32" }), placed, tensor(c, { dtype: "float32" })]);
      expect(buckets.open(0)).toBeUndefined();
    });
    buckets.endMicroBatch(0);
    const sum = buckets.take(0);
    expect(Array.from(sum.toTypedArray() as Float32Array)).toEqual(expected);
    sum.dispose();
  });

  it.each(["float32", "bfloat16"] as const)(
    "rows of a table give the bits of a dense gradient, %s",
    (dtype) => {
      const [rows, width] = [40, 6];
      const table = layoutBlock(
        0,
        "root",
        3,
        [{ name: "table", shape: [rows, width], dtype, init: ones }],
        replicas(1),
      );
      // An output layer's, then that of two look-ups, which look some rows up several times.
      const of = (firstByRows: number | undefined, order: readonly number[]) =>
        scope(() => {
          const buckets = new GradientBuckets([table], dtype);
          const weight = normal([rows, width], 1, { dtype }).requiresGrad_();
          const ids = tensor([3, 39, 3, 0, 3, 17, 0, 5], { dtype: "int64" });
          const y = ops
            .embedding(weight, ids)
            .add(ops.embedding(weight, ids.add(arange(8).to("int64")).clamp(0, 39)));
          const options = firstByRows === undefined ? {} : { firstByRows };
          const [looked] = grad([y], [weight], [normal([8, width], 2, { dtype })], options);
          const given = [normal([rows, width], 3, { dtype }), looked as Tensor];
          for (const index of order) buckets.contribute(0, [given[index] as Tensor]);
          buckets.endMicroBatch(0);
          const sum = buckets.take(0);
          const bits = numbers(sum);
          sum.dispose();
          return bits;
        });
      for (const order of [[0, 1], [1, 0], [1]]) expect(of(0, order)).toEqual(of(undefined, order));
    },
  );

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
