// How parameters are laid out and grouped.
import { describe, expect, it } from "vitest";
import { checkOptimizers } from "../../../src/compute/optim/index.ts";
import { Mesh, planBlocks, sliceOf } from "../../../src/compute/parallel/index.ts";
import { AdamW, Linear } from "../../../src/entries/index.ts";
import { Exhibition } from "../../fixtures/acceptance/exhibits.ts";

describe("parameters", () => {
  // Appendix B, shard layout.
  it("lie at BMTrain's offsets within a block, whose slices are multiples of 1,024 elements", () => {
    const plan = planBlocks(new Linear(5, 7), { zero: 3, mesh: new Mesh({ dp: 2 }), rank: 0 });
    const [block] = plan.layouts;
    expect(block?.parameters.map(({ name, numel, offset }) => [name, numel, offset])).toEqual([
      ["weight", 35, 0],
      ["bias", 7, 128],
    ]);
    // BMTrain: 256 elements in all and slices of 128. A slice of ours is a multiple of 1,024, so that the norm's sums of
    // squares, taken by chunks of that many, are the same for every number of ranks.
    expect(block?.numel).toBe(2048);
    expect([0, 1].map((member) => block && sliceOf(block, member))).toEqual([
      { begin: 0, end: 1024 },
      { begin: 1024, end: 2048 },
    ]);
  });

  // Appendix A 10.
  it("stand in one optimizer group each, tied ones and those of shared layers once", () => {
    const parameters = new Exhibition().namedParameters();
    const { groups } = new AdamW(parameters, { weightDecay: 0.1, groups: [{ match: /bias/, lrFactor: 2 }] });
    const grouped = groups.flatMap(({ names }) => names);
    expect(groups.length).toBeGreaterThan(1);
    expect(new Set(grouped).size).toBe(grouped.length);
    expect(grouped.toSorted()).toEqual([...parameters.keys()].toSorted());
    expect(new Set(parameters.values()).size).toBe(parameters.size);
  });

  // Appendix A 10.
  it("are refused where two optimizers would train the same one", () => {
    const parameters = new Linear(2, 2).namedParameters();
    const twice = [new AdamW(parameters), new AdamW([...parameters].slice(0, 1))];
    expect(() => checkOptimizers(twice, parameters)).toThrow(/weight/);
  });
});
