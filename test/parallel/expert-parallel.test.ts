import { afterAll, describe, expect, test } from "vitest";
import { ExpertMLP, MixtureOfExperts } from "../../src/compute/nn/index.ts";
import { cutExperts, expertCounts } from "../../src/compute/parallel/index.ts";
import type { MixtureCase } from "../fixtures/tensor-parallel/experts.ts";
import { type Pieces, wholeOf } from "../fixtures/tensor-parallel/whole.ts";
import { expectNear, Ranks, relativeError } from "./tensor-parallel/ranks.ts";

const ranks = new Ranks<typeof import("../fixtures/tensor-parallel/experts.ts")>(
  new URL("../fixtures/tensor-parallel/experts.ts", import.meta.url),
);
afterAll(() => ranks.stop());

/** The ranks' gradients as a run makes them: gate and residual layer summed over all ranks, an expert's as it is. */
function reduced(all: readonly Pieces[]): Map<string, Float64Array> {
  const summed = all.map(
    (pieces) =>
      new Map(
        [...pieces].map(([name, piece]) => {
          if (piece.split !== undefined) return [name, piece];
          const values = piece.values.map((_, index) =>
            all.reduce((sum, other) => sum + (other.get(name)?.values[index] ?? 0), 0),
          );
          return [name, { ...piece, values }];
        }),
      ),
  );
  return wholeOf(summed);
}

const plain = { options: {}, residual: false, preference: 0 };
const cases: [string, Omit<MixtureCase, "numShares">][] = [
  ["one expert a token", plain],
  ["two experts a token", { ...plain, options: { k: 2 } }],
  ["a residual layer", { ...plain, residual: true }],
  ["jitter", { ...plain, options: { noise: "jitter" } }],
  ["a noisy choice", { ...plain, options: { noise: "rsample" } }],
  [
    "tokens dropped by the least capacity",
    { ...plain, options: { capacityFactor: 0.5, minCapacity: 1 }, preference: 2 },
  ],
  ["nothing dropped", { ...plain, options: { dropTokens: false }, preference: 2 }],
  ["nothing dropped of two choices", { ...plain, options: { dropTokens: false, k: 2 }, preference: 2 }],
];

describe("experts dealt to ranks give what all experts on one device give", () => {
  test.each(cases)("with %s", async (_, given) => {
    for (const size of [2, 4]) {
      const wanted = { ...given, numShares: size };
      const [one] = await ranks.run("mix", 1, wanted);
      const all = await ranks.run("mix", size, wanted);
      if (one === undefined) throw new Error("no answer");
      for (const [share, expected] of one.shares.entries()) {
        const [got] = all[share]?.shares ?? [];
        if (got === undefined) throw new Error("no answer");
        // float32: a matrix product of another number of rows may be blocked otherwise.
        expect(relativeError(got.output, expected.output)).toBeLessThan(1e-6);
        expect(relativeError(got.inputGradient, expected.inputGradient)).toBeLessThan(1e-6);
        expect(got.auxiliaryLoss).toBe(expected.auxiliaryLoss);
        expect(got.counts).toEqual(expected.counts);
        expect(got.numDropped).toBe(expected.numDropped);
      }
      expectNear(reduced(all.map((rank) => rank.gradients)), wholeOf([one.gradients]), 2e-6); // sums of all ranks' tokens
    }
  });

  test("drops exactly what is beyond the capacity", async () => {
    const options = { capacityFactor: 0.5, minCapacity: 1 };
    const [one] = await ranks.run("mix", 1, { ...plain, options, numShares: 2 });
    for (const { counts, numDropped } of one?.shares ?? []) {
      const capacity = 2; // ⌈24 / 8 · 0.5⌉
      expect(numDropped).toBe(counts.reduce((sum, count) => sum + Math.max(0, count - capacity), 0));
      expect(numDropped).toBeGreaterThan(0);
    }
  });
});

describe("a model's experts", () => {
  const mixture = () => new MixtureOfExperts(6, new ExpertMLP(6, 6, 12));

  test("are cut in dim 0 and marked", () => {
    const model = mixture();
    cutExperts(model, { index: 1, count: 3 });
    expect(model.experts.parameters().map(({ shape, expert }) => [shape[0], expert])).toEqual(
      Array.from({ length: 4 }, () => [2, true]),
    );
    expect(model.gate.weight.expert).toBe(false);
    expect(expertCounts(model)).toEqual([6]);
  });

  test("are refused where the ranks do not divide them", () => {
    const cut = () => cutExperts(mixture(), { index: 0, count: 4 });
    expect(cut).toThrow(expect.objectContaining({ code: "PARAMETER_SPLIT" }));
  });
});
