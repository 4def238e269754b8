import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { dealCalls, stageOfBlocks } from "../../src/compute/parallel/index.ts";

const costliest = (costs: readonly number[], stages: readonly number[]) =>
  Math.max(...[...new Set(stages)].map((stage) => sum(costs.filter((_, block) => stages[block] === stage))));

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);

/** Every cut of `numBlocks` into `numStages`, by brute force. */
function allCuts(numBlocks: number, numStages: number): number[][] {
  if (numStages === 1) return [new Array<number>(numBlocks).fill(0)];
  return Array.from({ length: numBlocks - numStages + 1 }, (_, index) => index + 1).flatMap((first) =>
    allCuts(numBlocks - first, numStages - 1).map((rest) => [
      ...new Array<number>(first).fill(0),
      ...rest.map((stage) => stage + 1),
    ]),
  );
}

describe("dealCalls", () => {
  it("gives what follows the last call to its stage, or to one of its own where calls are one too few", () => {
    const two = dealCalls([1, 1, 1], 2);
    expect(two.virtualStageOf).toEqual([0, 0, 1]);
    expect([0, 1, 2, 3].map(two.stageAfter)).toEqual([0, 0, 0, 1]);
    const four = dealCalls([1, 1, 1], 4);
    expect(four.virtualStageOf).toEqual([0, 1, 2]);
    expect([0, 1, 2, 3].map(four.stageAfter)).toEqual([0, 0, 1, 3]);
    expect(() => dealCalls([1, 1, 1], 5)).toThrow("expected from 1 to 3 stages for 3 blocks, got 5");
  });
});

describe("stageOfBlocks", () => {
  it("deals equal blocks as Megatron and BMTrain do: ⌊n / S⌋ + (s < n mod S)", () => {
    expect(stageOfBlocks(new Array(10).fill(1), 4)).toEqual([0, 0, 0, 1, 1, 1, 2, 2, 3, 3]);
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 24 }),
        fc.integer({ min: 1, max: 8 }),
        fc.constantFrom(1, 0.1, 1e12 / 7),
        (numBlocks, wanted, cost) => {
          const numStages = Math.min(wanted, numBlocks);
          const stages = stageOfBlocks(new Array(numBlocks).fill(cost), numStages);
          const sizes = Array.from(
            { length: numStages },
            (_, stage) => stages.filter((of) => of === stage).length,
          );
          expect(sizes).toEqual(
            Array.from(
              { length: numStages },
              (_, stage) => Math.floor(numBlocks / numStages) + (stage < numBlocks % numStages ? 1 : 0),
            ),
          );
        },
      ),
    );
  });

  it("gives the stage with the head fewer layers", () => {
    // Eight layers, and a head that costs as much as two of them.
    expect(stageOfBlocks([1, 1, 1, 1, 1, 1, 1, 1, 2], 2)).toEqual([0, 0, 0, 0, 0, 1, 1, 1, 1]);
    expect(stageOfBlocks([5, 1, 1, 1, 1, 5], 3)).toEqual([0, 1, 1, 1, 1, 2]);
  });

  it("finds the least maximum there is, with every stage used", () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 0, max: 9 }), { minLength: 1, maxLength: 9 }),
        fc.integer({ min: 1, max: 4 }),
        (costs, wanted) => {
          const numStages = Math.min(wanted, costs.length);
          const stages = stageOfBlocks(costs, numStages);
          expect(new Set(stages).size).toBe(numStages);
          expect([...stages].sort((a, b) => a - b)).toEqual(stages);
          const least = Math.min(...allCuts(costs.length, numStages).map((cut) => costliest(costs, cut)));
          expect(costliest(costs, stages)).toBe(least);
        },
      ),
    );
  });

  it("deals blocks that cost nothing as evenly as others", () => {
    expect(stageOfBlocks([0, 0, 0], 2)).toEqual([0, 0, 1]);
  });

  it("refuses more stages than blocks", () => {
    expect(() => stageOfBlocks([1, 1], 3)).toThrow(
      expect.objectContaining({
        code: "PIPELINE_STAGES",
        message: expect.stringContaining("from 1 to 2 stages"),
      }),
    );
  });
});
