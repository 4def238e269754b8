import { describe, expect, it } from "vitest";
import { hasTileProducts, ops, setNumThreads, type Tensor, zeros } from "../../src/compute/tensor/index.ts";
import { numbers, refusal } from "../tensor/numbers.ts";
import { expectNear, normal } from "./inputs.ts";

// As weights' gradients are: the transposed gradient of the output, and the input. Edges in all dims, and an odd inner one.
const shapes = [
  [128, 256, 192],
  [201, 99, 131],
  [70, 1100, 66],
  [8, 12, 16],
] as const;

describe("add_product_", () => {
  it.each(shapes)("adds products of bfloat16 in float32: [%i, %i] @ [%i]", (rows, inner, columns) => {
    const outer = normal([inner, rows], 1, { dtype: "bfloat16" }).t();
    const given = normal([inner, columns], 2, { dtype: "bfloat16" });
    const before = normal([rows, columns], 3);
    const sum = before.clone();
    ops.troupe.addProduct_(sum, outer, given);
    ops.troupe.addProduct_(sum, outer, given);
    const product = outer.to("float64").mm(given.to("float64"));
    const isRounded = !hasTileProducts() || rows < 16;
    expectNear(sum, before.to("float64").add(product.mul(2)), isRounded ? 2 ** -7 : 1e-6);
  });

  // Sums in one round or several, of factors that stay in the cache or do not.
  it.each([
    ["rows by rows", false, false],
    ["rows by columns", false, true],
    ["columns by rows", true, false],
    ["columns by columns", true, true],
  ])("reads factors as they lie: %s", (_, leftLies, rightLies) => {
    const lie = (rows: number, columns: number, seed: number, lies: boolean) =>
      lies
        ? normal([columns, rows], seed, { dtype: "bfloat16" }).t()
        : normal([rows, columns], seed, { dtype: "bfloat16" });
    for (const [rows, inner, columns] of [
      [601, 2085, 45],
      [45, 1056, 1203],
      [330, 2085, 620],
      [740, 1000, 700],
      [40, 70, 8300],
    ] as const) {
      const [a, b] = [lie(rows, inner, 1, leftLies), lie(inner, columns, 2, rightLies)];
      const sum = zeros([rows, columns]);
      ops.troupe.addProduct_(sum, a, b);
      // A sum of 2,085 terms that are added in turn in float32 errs by 1.2e-6 of the largest.
      const ofTiles = inner > 2000 ? 2e-6 : 1e-6;
      expectNear(sum, a.to("float64").mm(b.to("float64")), hasTileProducts() ? ofTiles : 2 ** -7);
    }
  });

  it("has the same bits with any number of threads", () => {
    // Without tiles a large product is a library's.
    const [rows, inner, columns] = hasTileProducts() ? [330, 2085, 620] : [300, 200, 300];
    const a = normal([rows, inner], 1, { dtype: "bfloat16" });
    const b = normal([inner, columns], 2, { dtype: "bfloat16" });
    const of = (threads: number): number[] => {
      setNumThreads(threads);
      const sum = zeros([rows, columns]);
      ops.troupe.addProduct_(sum, a, b);
      return numbers(sum);
    };
    expect(of(2)).toEqual(of(1));
  });

  it.each<[string, () => readonly [Tensor, Tensor, Tensor], RegExp]>([
    [
      "factors of float32",
      () => [zeros([2, 2]), zeros([2, 3]), zeros([3, 2])],
      /factors of bfloat16 or float16, got Float and Float/,
    ],
    [
      "matrices that do not fit",
      () => [zeros([2, 2]), zeros([2, 3], { dtype: "bfloat16" }), zeros([2, 2], { dtype: "bfloat16" })],
      /matrices that fit each other, got \[2, 3\] and \[2, 2\]/,
    ],
    [
      "a sum of another shape",
      () => [zeros([4]), zeros([2, 3], { dtype: "bfloat16" }), zeros([3, 2], { dtype: "bfloat16" })],
      /a contiguous sum of float32 of \[2, 2\], got Float of \[4\]/,
    ],
  ])("refuses %s", (_, given, message) => {
    expect(refusal(() => ops.troupe.addProduct_(...given()))?.message).toMatch(message);
  });
});
