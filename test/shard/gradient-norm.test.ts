import { describe, expect, it } from "vitest";
import { sumsOfSquares } from "../../src/actors/shard/reduce/gradient-norm.ts";
import { ones } from "../../src/compute/nn/index.ts";
import { layoutBlock, replicas, SLICE_ALIGNMENT } from "../../src/compute/parallel/index.ts";
import { tensor } from "../../src/compute/tensor/index.ts";
import { numbers } from "../tensor/numbers.ts";

/** Sums of 1,024 elements each, in the order of the parameters, dealt out as `numRanks` shards would have them. */
function dealt(numRanks: number, chunksOf: readonly (readonly number[])[]) {
  const layouts = chunksOf.map((chunks, index) => {
    const spec = {
      name: `p${index}`,
      shape: [chunks.length * SLICE_ALIGNMENT],
      dtype: "float32",
      init: ones,
    } as const;
    return layoutBlock(index, `b${index}`, 3, [spec], replicas(numRanks));
  });
  const bySlice = Array.from({ length: numRanks }, (_, rank) =>
    Float64Array.from(
      layouts.flatMap((layout, index) => {
        const perSlice = layout.sliceNumel / SLICE_ALIGNMENT;
        const chunks = chunksOf[index] ?? [];
        return Array.from({ length: perSlice }, (_, chunk) => chunks[rank * perSlice + chunk] ?? 0);
      }),
    ),
  );
  const shares = tensor(Float64Array.from(bySlice.flatMap((sums) => [...sums])));
  return numbers(sumsOfSquares(layouts, shares, numRanks));
}

describe("sumsOfSquares", () => {
  it("has the same bits for every number of ranks", () => {
    const chunks = [
      Array.from({ length: 13 }, (_, index) => Math.sin(index + 1) ** 2 * 1e-3),
      Array.from({ length: 205 }, (_, index) => Math.cos(index + 1) ** 2 / 3),
      Array.from({ length: 5 }, (_, index) => 10 ** (index - 2) / 3),
    ];
    const whole = dealt(1, chunks);
    for (const numRanks of [2, 3, 4, 7]) expect(dealt(numRanks, chunks)).toEqual(whole);
  });

  it("is the sum over all slices", () => {
    expect(dealt(2, [[9, 16]])).toEqual([25]);
  });
});
