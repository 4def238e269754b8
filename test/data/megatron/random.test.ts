import { describe, expect, it } from "vitest";
import {
  MersenneTwister,
  MersenneTwister64,
} from "../../../src/library/data/megatron/numpy/mersenne-twister.ts";
import { RandomState, roundHalfEven } from "../../../src/library/data/megatron/numpy/random-state.ts";

/** `count` values of `draw`. */
function take<T>(count: number, draw: () => T): T[] {
  return Array.from({ length: count }, draw);
}

// The numbers are numpy's, C++'s and torch's own.
describe("the Mersenne Twister", () => {
  it("gives the standard's ten thousandth number", () => {
    const bits = new MersenneTwister(5489);
    expect(take(10_000, () => bits.next()).at(-1)).toBe(4_123_659_995);
    const wide = new MersenneTwister64(5489n);
    expect(take(10_000, () => wide.next()).at(-1)).toBe(9_981_545_732_273_789_042n);
  });

  it.each([
    [0, [2_357_136_044, 2_546_248_239, 3_071_714_933, 3_626_093_760, 2_588_848_963]],
    [42, [1_608_637_542, 3_421_126_067, 4_083_286_876, 787_846_414, 3_143_890_026]],
    [1234, [822_569_775, 2_137_449_171, 2_671_936_806, 3_512_589_365, 1_880_026_316]],
  ])("begins with numpy's numbers for seed %i", (seed, expected) => {
    const bits = new MersenneTwister(seed);
    expect(take(5, () => bits.next())).toEqual(expected);
  });
});

describe("numpy's legacy draws", () => {
  it.each([
    [1234, [0.1915194503788923, 0.6221087710398319, 0.4377277390071145]],
    [0, [0.5488135039273248, 0.7151893663724195, 0.6027633760716439]],
    [42, [0.3745401188473625, 0.9507143064099162, 0.7319939418114051]],
  ])("random, seed %i", (seed, expected) => {
    const random = new RandomState(seed);
    expect(take(3, () => random.random())).toEqual(expected);
  });

  it.each([
    [1234, [7, 2, 9, 1, 0, 8, 4, 5, 6, 3], [47, 83, 38, 53, 76]],
    [42, [8, 1, 5, 0, 7, 2, 9, 4, 3, 6], [51, 92, 14, 71, 60]],
    [0, [2, 8, 4, 9, 1, 6, 7, 3, 0, 5], [44, 47, 64, 67, 67]],
  ])("shuffle and randint, seed %i", (seed, shuffled, integers) => {
    const items = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];
    new RandomState(seed).shuffle(items);
    expect(items).toEqual(shuffled);
    const random = new RandomState(seed);
    expect(take(5, () => random.randint(0, 100))).toEqual(integers);
  });

  it("interval draws nothing where there is no choice, and two words where one is too short", () => {
    const random = new RandomState(0);
    expect(random.interval(0)).toBe(0);
    expect(random.next()).toBe(2_357_136_044);
    const [high, low] = [2_546_248_239, 3_071_714_933];
    expect(random.interval(2 ** 40 - 1)).toBe((high & 255) * 2 ** 32 + low);
  });
});

it("rounds halves to the even number, as Python does", () => {
  expect([0.5, 1.5, 2.5, 2.4, 2.6, -0.5].map(roundHalfEven)).toEqual([0, 2, 2, 2, 3, 0]);
});
