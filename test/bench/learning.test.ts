import { describe, expect, it } from "vitest";
import { nudged } from "../../bench/learning/nudge.ts";
import {
  isWithinSpread,
  type Learnt,
  learningPage,
  roundingOf,
  spreadOf,
  unsurenessOf,
} from "../../bench/learning/page.ts";

describe("a start that differs by roundings", () => {
  const values = Float32Array.from({ length: 1000 }, (_, index) => (index % 10 === 0 ? 0 : Math.sin(index)));
  const weight = {
    name: "weight",
    dtype: "F32" as const,
    shape: [values.length],
    read: () => new Uint8Array(values.buffer),
  };
  const bits = (start: number) => {
    const [made] = nudged([weight], start);
    return [...new Uint32Array(made?.read().slice().buffer ?? new ArrayBuffer(0))];
  };
  const given = bits(0);

  it("has the last bit of about every second weight turned, and no other", () => {
    const turned = bits(1).map((value, place) => value ^ (given[place] as number));
    expect(new Set(turned)).toEqual(new Set([0, 1]));
    const share = turned.filter((bit) => bit === 1).length / values.filter((value) => value !== 0).length;
    // 900 lots: four standard deviations are 0.07.
    expect(Math.abs(share - 0.5)).toBeLessThan(0.07);
  });

  it("leaves zeros zeros, what it was given as it is, and all weights where it is the first", () => {
    const made = bits(1);
    expect(values.every((value, place) => value !== 0 || made[place] === 0)).toBe(true);
    expect(bits(0)).toEqual([...new Uint32Array(values.buffer)]);
  });

  it("is the same each time it is asked for, and another than the next", () => {
    expect(bits(1)).toEqual(bits(1));
    expect(bits(1)).not.toEqual(bits(2));
  });
});

describe("what a comparison of learning says", () => {
  const learnt = (ours: number[][], theirs: number[][]): Learnt => ({
    day: "2026-11-23",
    steps: 1,
    apart: 0,
    score: "accuracy",
    ours,
    theirs,
    isBetterAbove: true,
    shuffled: 0,
    chance: 0,
    chanceIs: "nothing",
    slack: 0,
  });

  it("takes best and worst seed for the spread, and of several starts the mean over every choice of one of each", () => {
    expect(spreadOf(learnt([], [[1], [4], [2]]))).toBe(3);
    // 0 and 5, 0 and 7, 2 and 5, 2 and 7.
    expect(
      spreadOf(
        learnt(
          [],
          [
            [0, 2],
            [5, 7],
          ],
        ),
      ),
    ).toBe(5);
  });

  it("two sides are equal if their means lie within that spread", () => {
    expect(isWithinSpread(learnt([[3.9], [3.9]], [[1], [3]]))).toBe(true);
    expect(isWithinSpread(learnt([[4.1], [4.1]], [[1], [3]]))).toBe(false);
  });

  it("tells roundings from seeds: the deviation of starts about their own seed's mean", () => {
    const both = learnt(
      [
        [1, 3],
        [11, 13],
      ],
      [
        [5, 7],
        [5, 7],
      ],
    );
    expect(roundingOf(both)).toBeCloseTo(Math.SQRT2, 12);
    // Four runs a side.
    expect(unsurenessOf(both)).toBeCloseTo(1, 12);
  });

  it("is a page with a row for each case, as wide as the others, that marks and names what misses its bar", () => {
    const page = learningPage(
      new Map([
        ["mrpc", { learnt: learnt([[0.2], [0.3]], [[0.2], [0.3]]), versions: "" }],
        ["vit", { learnt: { ...learnt([[0.2]], [[0.2]]), apart: 0.5 }, versions: "" }],
      ]),
    );
    const rows = page.split("\n").filter((line) => /^\| (case|---|mrpc|vit)/.test(line));
    const [head, dashes, mrpc, vit] = rows;
    expect(new Set([head, dashes, mrpc, vit].map((line) => line?.length)).size).toBe(1);
    expect(mrpc).not.toContain("✗");
    expect(vit).toContain("5.0e-1 ✗");
    expect(page).toContain("- missed: vit: losses 5.0e-1 apart, bar 0.0001\n");
    expect(page).toMatch(/\| not run +\|/);
  });
});
