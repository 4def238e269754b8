import { describe, expect, test } from "vitest";
import {
  Constant,
  Cosine,
  Exponential,
  LinearDecay,
  LinearWithWarmup,
  MegatronSchedule,
  Noam,
  type Schedule,
  WarmupStableDecay,
} from "../../src/compute/optim/index.ts";

// BMTrain's schedules at peak 1, warm-up 10, end 100, computed with its formulas.
const steps = [0, 1, 5, 9, 10, 11, 50, 99, 100];
const peak = { lr: 1 };

function expectRates(schedule: Schedule, expected: number[]) {
  const rates = steps.map((step) => schedule.lrAt(step));
  expected.forEach((rate, index) => void expect(rates[index]).toBeCloseTo(rate, 6));
}

describe("learning rate schedules", () => {
  test("hold the peak after warm-up", () => {
    expectRates(new Constant(peak, { warmup: 10 }), [0, 0.1, 0.5, 0.9, 1, 1, 1, 1, 1]);
    expect(new Constant({ lr: 3e-4 }).lrAt(0)).toBe(3e-4);
  });

  test("fall in a straight line to zero and stay there", () => {
    const schedule = new LinearDecay(peak, { warmup: 10, end: 100 });
    expectRates(schedule, [0, 0.1, 0.5, 0.9, 1, 0.988889, 0.555556, 0.011111, 0]);
    expect(schedule.lrAt(120)).toBe(0);
  });

  test("fall along a cosine and do not rise again after the end", () => {
    const schedule = new Cosine(peak, { warmup: 10, end: 100 });
    expectRates(schedule, [0, 0.1, 0.5, 0.9, 1, 0.999695, 0.586824, 0.000305, 0]);
    expect(schedule.lrAt(120)).toBe(0);
  });

  test("follow Noam's inverse square root", () => {
    const schedule = new Noam(peak, { warmup: 10 });
    expectRates(schedule, [0, 0.031623, 0.158114, 0.284605, 0.316228, 0.301511, 0.141421, 0.100504, 0.1]);
    expect(schedule.lrAt(120)).toBeCloseTo(0.091287, 6);
  });

  test("rise again after the end where BMTrain's own cosine is asked for, and never by default", () => {
    const upstream = new Cosine(peak, { warmup: 10, end: 100, afterEnd: "rise" });
    expectRates(upstream, [0, 0.1, 0.5, 0.9, 1, 0.999695, 0.586824, 0.000305, 0]);
    expect(upstream.lrAt(120)).toBeCloseTo(0.116978, 6);
    expect(new Cosine(peak, { warmup: 10, end: 10, afterEnd: "rise" }).lrAt(10)).toBe(1);
  });

  test("fall by a factor a step", () => {
    const schedule = new Exponential(peak, { warmup: 10 });
    expectRates(schedule, [0, 0.1, 0.5, 0.9, 1, 0.95, 0.128512, 0.010409, 0.009888]);
    expect(schedule.lrAt(120)).toBeCloseTo(0.003545, 6);
  });

  test("follow Megatron's, counted in samples: the first update is made at rate 0", () => {
    const megatron = (style: "linear" | "cosine", minLr = 0) =>
      new MegatronSchedule(
        { lr: 1e-3 },
        { style, batchSize: 16, decaySamples: 2000 * 16, warmupFraction: 0.01, minLr },
      );
    const at = (schedule: Schedule, iterations: number[]) =>
      iterations.map((iteration) => schedule.lrAt(iteration + 1));
    const near = (rates: number[]) => rates.map((rate) => expect.closeTo(rate, 15));
    expect(at(megatron("linear"), [0, 1, 10, 20, 21, 100, 1000, 2000, 2001])).toEqual(
      near([0, 5e-5, 5e-4, 1e-3, 9.994949494949495e-4, 9.595959595959596e-4, 5.050505050505049e-4, 0, 0]),
    );
    expect(at(megatron("cosine", 1e-5), [21, 100, 1000, 3000])).toEqual(
      near([9.999993769190447e-4, 9.960176323512437e-4, 5.1285365209823e-4, 1e-5]),
    );
    const constant = new MegatronSchedule(peak, {
      style: "constant",
      batchSize: 2,
      decaySamples: 8,
      warmupSamples: 4,
    });
    expect(at(constant, [0, 1, 2, 3, 100])).toEqual([0, 0.5, 1, 1, 1]);
  });

  test("follow transformers' linear one with warm-up", () => {
    const schedule = new LinearWithWarmup(peak, { warmup: 4, end: 12 });
    const rates = [1, 2, 5, 6, 13, 20].map((step) => schedule.lrAt(step));
    expect(rates).toEqual([0, 0.25, 1, 0.875, 0, 0]);
    expect(new LinearWithWarmup(peak, { end: 2 }).lrAt(1)).toBe(1);
  });

  test("stay at the peak and fall at the end", () => {
    const options = { warmup: 2, stableUntil: 10, end: 14, minLr: 0.1 };
    const at = (fall: "sqrt" | "linear" | "cosine") =>
      [0, 1, 2, 10, 11, 12, 14, 99].map((step) =>
        new WarmupStableDecay(peak, { ...options, fall }).lrAt(step),
      );
    expect(at("linear")).toEqual([
      0,
      0.5,
      1,
      1,
      expect.closeTo(0.775, 12),
      expect.closeTo(0.55, 12),
      0.1,
      0.1,
    ]);
    expect(at("sqrt")[4]).toBeCloseTo(0.55, 12);
    expect(at("cosine")[5]).toBeCloseTo(0.55, 12);
  });

  test("equal nanoGPT's cosine from 1e-3 to 1e-4 at every iteration", () => {
    // Its iteration i makes update i + 1 and warms up by (i + 1) / (warm-up + 1): ours, one step later.
    const nanoGPT = (iteration: number) => {
      if (iteration < 100) return (1e-3 * (iteration + 1)) / 101;
      if (iteration > 2000) return 1e-4;
      const ratio = (iteration - 100) / (2000 - 100);
      return 1e-4 + 0.5 * (1 + Math.cos(Math.PI * ratio)) * (1e-3 - 1e-4);
    };
    const schedule = new Cosine({ lr: 1e-3 }, { warmup: 101, end: 2001, minLr: 1e-4 });
    for (let iteration = 0; iteration < 2100; iteration++) {
      expect(schedule.lrAt(iteration + 1)).toBeCloseTo(nanoGPT(iteration), 15);
    }
  });

  test("reach a lowest rate other than zero, and start at once without warm-up", () => {
    const schedule = new Cosine({ lr: 1e-3 }, { warmup: 100, end: 2000, minLr: 1e-4 });
    const rates = [50, 100, 1050, 2000, 3000].map((step) => schedule.lrAt(step));
    expect(rates).toEqual([5e-4, 1e-3, expect.closeTo(5.5e-4, 12), 1e-4, 1e-4]);
    expect(new LinearDecay(peak, { end: 10 }).lrAt(0)).toBe(1);
    expect(new LinearDecay(peak, { warmup: 10, end: 10, minLr: 0.5 }).lrAt(10)).toBe(0.5);
  });

  test.each([
    ["a negative warm-up", () => new Constant(peak, { warmup: -1 })],
    ["an end before the end of warm-up", () => new Cosine(peak, { warmup: 10, end: 9 })],
    ["a fractional end", () => new LinearDecay(peak, { end: 1.5 })],
    ["a lowest rate above the peak", () => new Cosine(peak, { end: 9, minLr: 2 })],
    ["an end of nobody", () => new Cosine(peak, { end: 9, afterEnd: "fall" as "rise" })],
    ["a gamma that grows", () => new Exponential(peak, { gamma: 2 })],
    [
      "warm-up given twice",
      () =>
        new MegatronSchedule(peak, {
          style: "linear",
          batchSize: 1,
          decaySamples: 9,
          warmupSamples: 1,
          warmupFraction: 0.1,
        }),
    ],
    [
      "warm-up longer than the fall",
      () => new MegatronSchedule(peak, { style: "linear", batchSize: 1, decaySamples: 9, warmupSamples: 9 }),
    ],
    [
      "a fall before the end of warm-up",
      () => new WarmupStableDecay(peak, { warmup: 3, stableUntil: 2, end: 9 }),
    ],
    ["warm-up by another name", () => new Constant(peak, { warmupSteps: 5 } as object)],
    ["an end of its warm-up", () => new Cosine(peak, { end: 9, warmupEnd: 3 } as never)],
    ["Noam without warm-up", () => new Noam(peak, { warmup: 0 })],
  ])("refuse %s", (_, create) => {
    expect(create).toThrow(expect.objectContaining({ code: "OPTIMIZER_OPTION" }));
  });
});
