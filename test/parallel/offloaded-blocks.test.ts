import { describe, expect, it } from "vitest";
import { layoutBlock, offloadedBlocks, replicas } from "../../src/compute/parallel/index.ts";

/** Blocks of so many chunks of 1,024 elements; block 0 is the root. */
const blocks = (...chunks: number[]) =>
  chunks.map((size, index) =>
    layoutBlock(
      index,
      `${index}`,
      3,
      [{ name: "w", shape: [size * 1024], dtype: "float32", init: { kind: "constant", value: 0 } }],
      replicas(1),
    ),
  );

describe("offloadedBlocks", () => {
  const layouts = blocks(10, 4, 4, 4, 4);

  it("takes the last blocks first and the root last", () => {
    expect(offloadedBlocks(layouts, 4 / 26)).toEqual([4]);
    expect(offloadedBlocks(layouts, 8 / 26)).toEqual([3, 4]);
    expect(offloadedBlocks(layouts, 16 / 26)).toEqual([1, 2, 3, 4]);
    expect(offloadedBlocks(layouts, 1)).toEqual([0, 1, 2, 3, 4]);
    expect(offloadedBlocks(layouts, 0)).toEqual([]);
  });

  it("comes as near to the share as complete blocks allow", () => {
    expect(offloadedBlocks(layouts, 0.05)).toEqual([]);
    expect(offloadedBlocks(layouts, 0.1)).toEqual([4]);
    expect(offloadedBlocks(layouts, 0.25)).toEqual([3, 4]);
    expect(offloadedBlocks(layouts, 0.75)).toEqual([1, 2, 3, 4]);
    expect(offloadedBlocks(layouts, 0.85)).toEqual([0, 1, 2, 3, 4]);
  });
});
