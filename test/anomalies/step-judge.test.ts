import { describe, expect, it } from "vitest";
import {
  DEFAULT_RULES,
  LossRecord,
  type Policy,
  type StepAnomaly,
  type StepFigures,
  StepJudge,
} from "../../src/job/anomalies/index.ts";

const sound: StepFigures = { lossNats: 2, gradientNorm: 1, rank: undefined, block: undefined };

/** Losses that fall from 3 towards 2, up and down by some hundredths. */
const usual = Array.from({ length: 64 }, (_, step) => 2 + Math.exp(-step / 20) + 0.05 * Math.sin(7 * step));

function rulesWith(policies: Partial<Record<StepAnomaly, Policy>>) {
  return { ...DEFAULT_RULES, policies: { ...DEFAULT_RULES.policies, ...policies } };
}

/** The verdict on one more step of a judge that has seen the usual losses. */
function judged(figures: Partial<StepFigures>, policies: Partial<Record<StepAnomaly, Policy>> = {}) {
  return new StepJudge(rulesWith(policies), false, usual).judge({ ...sound, ...figures });
}

describe("a judge of steps", () => {
  it.each<[string, Partial<StepFigures>, StepAnomaly | undefined]>([
    ["a loss like those before", { lossNats: 2.1 }, undefined],
    ["a loss far below those before", { lossNats: 0.1 }, undefined],
    ["a loss at the upper end of their unrest", { lossNats: 2.6 }, undefined],
    ["a loss several times as large", { lossNats: 9 }, "loss-spike"],
    ["a loss that is not a number", { lossNats: Number.NaN, rank: 3 }, "loss-not-finite"],
    ["an infinite loss", { lossNats: Number.POSITIVE_INFINITY }, "loss-not-finite"],
    ["a gradient that is not a number", { gradientNorm: Number.NaN, block: "root" }, "gradient-not-finite"],
    ["an infinite gradient", { gradientNorm: Number.POSITIVE_INFINITY }, "gradient-not-finite"],
    [
      "both, of which the loss says more",
      { lossNats: Number.NaN, gradientNorm: Number.NaN },
      "loss-not-finite",
    ],
    ["a large gradient, which clipping is for", { gradientNorm: 1e30 }, undefined],
  ])("a judge of steps finds the anomaly in %s", (_, figures, anomaly) => {
    expect(judged(figures).finding?.anomaly).toBe(anomaly);
  });

  it("says what was measured, what the limit was, and where", () => {
    const { finding } = judged({ lossNats: 9 });
    expect(finding).toMatchObject({ value: 9, policy: "tell" });
    expect(finding?.limit).toBeGreaterThan(Math.max(...usual.slice(-16)));
    expect(judged({ lossNats: Number.NaN, rank: 3 }).finding).toMatchObject({ rank: 3, policy: "stop" });
    expect(judged({ gradientNorm: Number.NaN, block: "h.1" }).finding).toMatchObject({ block: "h.1" });
  });

  it("skips the anomalies that its options name, and no others", () => {
    expect(judged({ lossNats: 9 }).skipped).toBe(false);
    expect(judged({ lossNats: 9 }, { "loss-spike": "skip" }).skipped).toBe(true);
    expect(judged({ gradientNorm: Number.NaN }, { "loss-spike": "skip" }).skipped).toBe(false);
    expect(judged({ gradientNorm: Number.NaN }, { "gradient-not-finite": "skip" }).skipped).toBe(true);
  });

  it("calls nothing a spike before it knows how losses vary", () => {
    const judge = new StepJudge(DEFAULT_RULES, false, usual.slice(0, 10));
    for (let step = 0; step < 6; step++) {
      expect(judge.judge({ ...sound, lossNats: 50 }).finding).toBeUndefined();
    }
  });

  it("is not misled by spikes among the losses it looks back on, and gets used to what stays", () => {
    const judge = new StepJudge(DEFAULT_RULES, false, usual);
    const isSpike = (lossNats: number) => judge.judge({ ...sound, lossNats }).finding !== undefined;
    for (let index = 0; index < 20; index++) expect(isSpike(9 + index)).toBe(true);
    const stays = Array.from({ length: 64 }, () => isSpike(9));
    expect(stays.at(-1)).toBe(false);
  });

  it("goes on from the losses that another judge has seen as if it had seen them itself", () => {
    const losses = [...usual, 9, 2, 2.4, 12, 3, 2.9];
    const whole = new StepJudge(DEFAULT_RULES, false, []);
    const limits = losses.map((lossNats) => whole.judge({ ...sound, lossNats }).finding?.limit);
    for (let step = 64; step < losses.length; step++) {
      const later = new StepJudge(DEFAULT_RULES, false, losses.slice(0, step));
      const { finding } = later.judge({ ...sound, lossNats: losses[step] as number });
      expect(finding?.limit).toBe(limits[step]);
    }
  });

  it("looks back in a resumed run on what the run before it did, and on what it has made again since", () => {
    const before = new LossRecord();
    for (const [index, loss] of usual.entries()) before.note(index + 1, loss);
    const made = usual.length;
    const after = new LossRecord(made, before.until(made));
    expect(after.until(made)).toEqual(before.until(made));
    expect(after.until(made - 1)).toEqual(before.until(made).slice(0, -1));
    after.note(made + 1, 5);
    before.note(made + 1, 5);
    expect(after.until(made + 1)).toEqual(before.until(made + 1));
  });

  it("looks back past steps without a finite loss, and no further than it needs", () => {
    const record = new LossRecord(4, [8, 9]);
    record.note(5, Number.NaN);
    record.note(7, 1);
    expect(record.until(7)).toEqual([8, 9, 1]);
    for (let step = 8; step <= 1_000_000; step++) record.note(step, step);
    // A copy of all losses for each of so many saves would take hours.
    let sum = 0;
    for (let step = 900_000; step < 1_000_000; step++) sum += record.until(step)[0] as number;
    expect(sum).toBe(100_000 * (949_999.5 - 63));
    record.note(2, 3);
    expect(record.until(3)).toEqual([3, 8]);
  });

  it("leaves gradients that overflow to the loss scale, until that has tried for too long", () => {
    const judge = new StepJudge(DEFAULT_RULES, true, []);
    const overflow = { ...sound, gradientNorm: Number.POSITIVE_INFINITY };
    for (let step = 0; step < 100; step++) {
      expect(judge.judge(overflow)).toEqual({ skipped: true, finding: undefined });
    }
    expect(judge.judge(overflow).finding).toMatchObject({ policy: "stop", numSkipped: 101 });
    expect(judge.judge(sound)).toEqual({ skipped: false, finding: undefined });
    expect(judge.judge(overflow).finding).toBeUndefined();
  });

  it("ends a run that would leave out more than a hundred steps in a row", () => {
    const judge = new StepJudge(rulesWith({ "loss-not-finite": "skip" }), false, []);
    const policies = Array.from({ length: 101 }, () => judge.judge({ ...sound, lossNats: Number.NaN }));
    expect(policies[99]?.finding).toMatchObject({ policy: "skip", numSkipped: 100 });
    expect(policies[100]?.finding).toMatchObject({ policy: "stop", numSkipped: 101 });
  });
});
