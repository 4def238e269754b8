import { describe, expect, it } from "vitest";
import { parseProcessors, shareOf } from "../../src/compute/tensor/processors.ts";

describe("a rank's share of its host's processors", () => {
  const nodes = [parseProcessors("0-3,8-11\n"), parseProcessors("4-7,12-15")];

  it("is as many as are its due, none of them another's, neighbours of one node together", () => {
    const shares = [0, 1, 2, 3].map((index) => shareOf("cores", index, 4, nodes));
    expect(shares).toEqual([
      [0, 1, 2, 3],
      [8, 9, 10, 11],
      [4, 5, 6, 7],
      [12, 13, 14, 15],
    ]);
    expect([0, 1, 2].flatMap((index) => shareOf("cores", index, 3, nodes))).toEqual(nodes.flat());
  });

  it("is one at least, where more ranks than processors share them", () => {
    expect([0, 1, 2, 3].map((index) => shareOf("cores", index, 4, [[2, 5]]))).toEqual([[2], [2], [5], [5]]);
  });

  it("is all of one NUMA node, over which ranks are spread", () => {
    expect([0, 1, 2].map((index) => shareOf("numa", index, 3, nodes))).toEqual([
      nodes[0],
      nodes[0],
      nodes[1],
    ]);
    expect(shareOf("numa", 0, 1, nodes)).toEqual(nodes[0]);
  });
});
