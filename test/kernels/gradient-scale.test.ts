import { describe, expect, it } from "vitest";
import { clipFactor } from "../../src/compute/optim/index.ts";
import { ops, type Tensor, tensor, zeros } from "../../src/compute/tensor/index.ts";
import { numbers, refusal } from "../tensor/numbers.ts";
import { expectSame, normal } from "./inputs.ts";

const { troupe } = ops;
const float64 = { dtype: "float64" } as const;

const inOrder = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0);

/** A slow reference: of each block the sums of all ranks one behind the other, added up in groups of 32. */
function sumsByGroups(shares: readonly Float64Array[], chunks: readonly number[], kinds: number): number[] {
  const sums = Array.from({ length: kinds }, () => 0);
  let begin = 0;
  for (const count of chunks) {
    for (const [kind, sum] of sums.entries()) {
      const first = begin + kind * count;
      const all = shares.flatMap((share) => [...share.slice(first, first + count)]);
      const groups = all.flatMap((_, i) => (i % 32 === 0 ? inOrder(all.slice(i, i + 32)) : []));
      sums[kind] = groups.reduce((total, group) => total + group, sum);
    }
    begin += kinds * count;
  }
  return sums;
}

/** The ranks' statistics: a row each, sums that differ by many orders of magnitude, and three values behind them. */
function sharesOf(members: number, chunks: readonly number[], kinds: number): Float64Array[] {
  const length = kinds * chunks.reduce((sum, count) => sum + count, 0) + 3;
  return Array.from({ length: members }, (_, member) =>
    Float64Array.from({ length }, (_, index) => Math.exp(10 * Math.sin(7 * index + member))),
  );
}

describe("sum_square_sums", () => {
  it.each([
    [1, [1], 1],
    [1, [40, 1, 33], 1],
    [3, [32, 64, 5], 2],
    [2, [20_011, 3], 2],
    [2, [], 2],
  ])(
    "adds up sums of %i ranks over blocks of %j chunks, %i kinds, by groups of 32, to the bit",
    (members, chunks, kinds) => {
      const shares = sharesOf(members, chunks, kinds);
      const joined = tensor(Float64Array.from(shares.flatMap((share) => [...share])));
      const sums = numbers(troupe.sumSquareSums(joined, members, chunks, kinds));
      expect(sums).toEqual(sumsByGroups(shares, chunks, kinds));
    },
  );

  it("refuses fewer sums than announced", () => {
    expect(refusal(() => troupe.sumSquareSums(zeros([5], float64), 1, [6], 1))?.message).toMatch(
      /6 sums or more, got 5/,
    );
  });
});

describe("gradient_scales", () => {
  const scalesOf = (squares: readonly number[][], divisor: number, limits: number[], leavesOut: boolean) =>
    numbers(troupe.gradientScales(tensor(squares, float64), divisor, limits, leavesOut));

  it("are the host's clip factors over the divisor, of the parts' norm together, to the bit", () => {
    for (const divisor of [1, 3, 7.3]) {
      for (const limit of [1e-3, 0.7, 5, 1e9, Number.POSITIVE_INFINITY]) {
        const parts = [
          [0.1, 2e-5],
          [17.3, 1 / 3],
          [1e-9, 0],
        ];
        const expected = [0, 1].flatMap((kind) => {
          const square = parts.reduce((sum, part) => sum + (part[kind] as number), 0);
          return [clipFactor(Math.sqrt(square) / divisor, limit) / divisor, 0];
        });
        expect(scalesOf(parts, divisor, [limit, limit], true)).toEqual(expected);
      }
    }
  });

  it.each([Number.NaN, Number.POSITIVE_INFINITY])(
    "leave out a step whose norm is not finite, %d, where that is wanted",
    (bad) => {
      const places = (leavesOut: boolean) =>
        scalesOf(
          [
            [4, 1],
            [bad, 1],
          ],
          1,
          [1, 0.5],
          leavesOut,
        );
      const [, whole, alone, other] = places(true);
      expect([whole, alone, other]).toEqual([1, clipFactor(Math.sqrt(2), 0.5), 1]);
      expect(places(false)).toEqual([clipFactor(bad, 1), 0, clipFactor(Math.sqrt(2), 0.5), 0]);
    },
  );
});

type Step = (state: readonly Tensor[], gradScale: number, scale?: Tensor) => void;

const numel = 1037;
const ends = [3, 500, numel];
const rates = [1e-3, 2e-3, 0.5];
const decays = [0, 0.1, 0.01];
const steps: Record<string, Step> = {
  adamw_: ([p, m, v, g, low], gradScale, scale) =>
    troupe.adamw_(p!, m!, v!, g!, low, ends, rates, decays, 0.9, 0.95, 1e-8, 3, gradScale, scale),
  adam_: ([p, m, v, g, low], gradScale, scale) =>
    troupe.adam_(p!, m!, v!, g!, low, ends, rates, decays, 0.9, 0.95, 1e-8, 3, gradScale, scale),
  bmtrain_adam_: ([p, m, v, g, low], gradScale, scale) =>
    troupe.bmtrainAdam_(p!, m!, v!, g!, low, ends, rates, decays, 0.9, 0.95, 1e-8, 3, gradScale, scale),
  sgd_: ([p, , , g, low], gradScale, scale) =>
    troupe.sgd_(p!, undefined, g!, low, ends, rates, decays, 0, 0, false, 3, gradScale, scale),
  "sgd_ with momentum": ([p, m, , g, low], gradScale, scale) =>
    troupe.sgd_(p!, m!, g!, low, ends, rates, decays, 0.9, 0.1, true, 3, gradScale, scale),
  lion_: ([p, m, , g, low], gradScale, scale) =>
    troupe.lion_(p!, m!, g!, low, ends, rates, decays, 0.9, 0.99, gradScale, scale),
};

const fresh = () => {
  const [param, first, second, gradient] = [1, 2, 3, 4].map((stream) => normal([numel], stream)) as Tensor[];
  return [param!, first!, second!.square(), gradient!, param!.to("bfloat16")];
};

describe.each(Object.entries(steps))("%s", (_, step) => {
  it("takes from memory what its gradient is multiplied by, with the bits of a number", () => {
    const factor = 0.1 / 3;
    for (const sign of [1, -1]) {
      const [given, read] = [fresh(), fresh()];
      step(given, sign * factor);
      step(read, sign, tensor([factor, 0], float64));
      for (const [index, state] of given.entries()) expectSame(read[index] as Tensor, state);
    }
  });

  it("changes nothing where the step is to be left out", () => {
    const [before, after] = [fresh(), fresh()];
    step(after, 1, tensor([Number.NaN, 1], float64));
    for (const [index, state] of before.entries()) expectSame(after[index] as Tensor, state);
  });

  it("refuses a scale that is no pair of float64", () => {
    expect(refusal(() => step(fresh(), 1, zeros([2])))?.message).toMatch(/expected scale to be float64/);
    expect(refusal(() => step(fresh(), 1, zeros([3], float64)))?.message).toMatch(
      /scale to be a contiguous tensor of 2/,
    );
  });
});
