import { describe, expect, it } from "vitest";
import { initialLossScale, type LossScaleRule, nextLossScale } from "../../src/compute/optim/index.ts";

const _ = false;
const overflow = true;

/** Scale and good steps after each step. */
function trace(rule: LossScaleRule, steps: readonly boolean[]) {
  let state = initialLossScale(rule);
  return steps.map((overflowed) => {
    state = nextLossScale(rule, state, overflowed);
    return [state.scale, state.goodSteps];
  });
}

describe("the loss scale", () => {
  it("follows BMTrain's golden trace: at the floor an overflow changes nothing", () => {
    const rule = { kind: "bmtrain", scale: 1024, factor: 2, goodSteps: 3, min: 256, max: 2048 } as const;
    const steps = [_, _, overflow, _, _, _, _, _, _, _, overflow, overflow, overflow, overflow, _];
    const expected = [
      [1024, 1],
      [1024, 2],
      [512, 0],
      [512, 1],
      [512, 2],
      [1024, 0],
      [1024, 1],
      [1024, 2],
      [2048, 0],
      [2048, 1],
      [1024, 0],
      [512, 0],
      [256, 0],
      [256, 0],
      [256, 1],
    ];
    expect(trace(rule, steps)).toEqual(expected);
    expect(trace({ ...rule, clamp: false }, steps)).toEqual(expected);
    // A factor below 1 is taken the other way round.
    expect(trace({ ...rule, factor: 0.5 }, steps)).toEqual(expected);
  });

  it("stays between BMTrain's minimum and maximum, which BMTrain itself may pass", () => {
    const rule = { kind: "bmtrain", scale: 3, goodSteps: 1, min: 2, max: 5 } as const;
    expect(trace(rule, [overflow]).at(-1)).toEqual([2, 0]);
    expect(trace({ ...rule, clamp: false }, [overflow]).at(-1)).toEqual([1.5, 0]);
    expect(trace(rule, [_]).at(-1)).toEqual([5, 0]);
    expect(trace({ ...rule, clamp: false }, [_]).at(-1)).toEqual([6, 0]);
  });

  it("follows Megatron's golden trace: hysteresis 2 forgives one overflow until the scale has grown", () => {
    const rule = { kind: "megatron", scale: 16, window: 3, hysteresis: 2 } as const;
    const steps = [overflow, overflow, overflow, _, _, _, overflow, overflow];
    expect(trace(rule, steps).map(([scale]) => scale)).toEqual([16, 8, 4, 4, 4, 8, 8, 4]);
    expect(initialLossScale({ kind: "megatron" }).scale).toBe(2 ** 32);
    expect(trace({ ...rule, scale: 1, min: 1 }, [overflow, overflow]).at(-1)?.[0]).toBe(1);
  });

  it("follows torch's GradScaler", () => {
    // torch.amp.GradScaler(init_scale=8, growth_interval=2) after each of these steps.
    const rule = { kind: "torch", scale: 8, growthInterval: 2 } as const;
    expect(trace(rule, [_, _, _, overflow, _, _])).toEqual([
      [8, 1],
      [16, 0],
      [16, 1],
      [8, 0],
      [8, 1],
      [16, 0],
    ]);
    // The scale never grows beyond float32, under either set of rules.
    for (const kind of ["bmtrain", "megatron"] as const) {
      const eager = { scale: 2 ** 127, goodSteps: 1, window: 1 };
      expect(trace({ kind, ...eager }, [_])).toEqual([[2 ** 127, 0]]);
    }
    expect(trace({ ...rule, scale: 2 ** 127, growthInterval: 1 }, [_])).toEqual([[2 ** 127, 0]]);
  });

  it("grows under Megatron's rule where a resumed run has more good steps than its window", () => {
    const rule = { kind: "megatron", scale: 16, window: 3, hysteresis: 2 } as const;
    const next = nextLossScale(rule, { scale: 4, goodSteps: 7, hysteresis: 0 }, false);
    expect(next).toEqual({ scale: 8, goodSteps: 0, hysteresis: 2 });
  });

  it("keeps a static scale whatever happens", () => {
    expect(trace({ kind: "static", scale: 128 }, [_, overflow, _])).toEqual([
      [128, 0],
      [128, 0],
      [128, 0],
    ]);
  });

  it.each([
    ["a scale of zero", { kind: "static", scale: 0 }],
    ["a scale beyond float32", { kind: "static", scale: 2 ** 128 }],
    ["an infinite scale", { kind: "torch", scale: Number.POSITIVE_INFINITY }],
    ["no growth", { kind: "torch", growthFactor: 1 }],
    ["a backoff that grows", { kind: "torch", backoffFactor: 2 }],
    ["half a step", { kind: "bmtrain", goodSteps: 0.5 }],
    ["a window of no steps", { kind: "megatron", window: 0 }],
    ["Megatron's minimum above the scale", { kind: "megatron", scale: 2, min: 4 }],
    ["BMTrain's minimum above the scale", { kind: "bmtrain", scale: 2, min: 4 }],
    ["rules of nobody", { kind: "apex" } as unknown as LossScaleRule],
  ] as const)("refuses %s", (__, rule) => {
    expect(() => initialLossScale(rule)).toThrow(expect.objectContaining({ code: "OPTIMIZER_OPTION" }));
  });
});
