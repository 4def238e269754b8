import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { grad, scope, tensor } from "../../src/compute/tensor/index.ts";
import { StepShares, sharesOf, weighLosses } from "../../src/job/index.ts";

describe("the shares of a step's batches", () => {
  it("are exactly 1 where all weigh alike, fractions too, and 0 where nothing counts", () => {
    expect(sharesOf(Array.from({ length: 10 }, () => 0.1))).toEqual(Array.from({ length: 10 }, () => 1));
    expect(sharesOf([0, 0, 0])).toEqual([0, 0, 0]);
    expect(sharesOf([0, 3])).toEqual([0, 2]);
  });

  it("make the mean of share × loss the mean over all that counts", () => {
    const batches = fc.array(
      fc.record({ weight: fc.nat(1000), loss: fc.double({ min: -10, max: 10, noNaN: true }) }),
      {
        minLength: 1,
      },
    );
    fc.assert(
      fc.property(batches, (all) => {
        const total = all.reduce((sum, { weight }) => sum + weight, 0);
        fc.pre(total > 0);
        const expected = all.reduce((sum, { weight, loss }) => sum + weight * loss, 0) / total;
        const shares = sharesOf(all.map(({ weight }) => weight)) as number[];
        const mean =
          all.reduce((sum, { loss }, index) => sum + (shares[index] as number) * loss, 0) / all.length;
        expect(Math.abs(mean - expected)).toBeLessThan(1e-12); // a few roundings of float64 near 10
      }),
    );
  });

  it("are those of each loss by its name", () => {
    const shares = sharesOf([
      { labels: 1, auxiliary: 5 },
      { labels: 3, auxiliary: 5 },
    ]);
    expect(shares).toEqual([
      { labels: 0.5, auxiliary: 1 },
      { labels: 1.5, auxiliary: 1 },
    ]);
  });

  it.each([[[-1]], [[Number.NaN]], [[Number.POSITIVE_INFINITY]], [[{}]], [[undefined as never]]])(
    "are refused of %o",
    (weights) => {
      expect(() => sharesOf(weights)).toThrow(/expected weigh to give finite numbers of at least 0/);
    },
  );

  it("are refused where batches name different losses", () => {
    expect(() => sharesOf([{ labels: 1 }, { words: 1 }])).toThrow(
      /a weight for the loss "labels", got weights for words/,
    );
  });

  it("weigh every batch of a step once, however often they are asked for", async () => {
    const asked: number[] = [];
    const shares = new StepShares(async ({ position }) => {
      asked.push(position);
      return position;
    });
    const step = { position: 2, numBatches: 3 };
    const all = [2, 4, 6].map((position) => shares.of(step, { split: "train", position, numSamples: 2 }));
    expect(await Promise.all(all)).toEqual([0.5, 1, 1.5]);
    expect(await shares.of(step, { split: "train", position: 4, numSamples: 2 })).toBe(1);
    expect(asked).toEqual([2, 4, 6]);
  });
});

describe("weighed losses", () => {
  it("are the very loss where its share is 1, and without value or gradient where nothing counts", () => {
    scope(() => {
      const loss = tensor(2);
      expect(weighLosses(loss, 1)).toBe(loss);
      const [x, nothing] = [tensor(3).requiresGrad_(), tensor(Number.NaN)];
      const both = weighLosses({ first: x, none: nothing.add(x) }, { first: 0.5, none: 0 });
      expect(both.item()).toBe(1.5);
      expect(grad([both], [x])[0]?.item()).toBe(0.5);
    });
  });

  it("are refused without a weight for each name", () => {
    scope(() => {
      expect(() => weighLosses({ labels: tensor(1) }, { words: 1 })).toThrow(/weight for the loss "labels"/);
      expect(() => weighLosses({}, 1)).toThrow(/got an object without any/);
    });
  });
});
