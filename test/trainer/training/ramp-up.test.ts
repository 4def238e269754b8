import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { stepFolder } from "../../../src/entries/checkpoint.ts";
import type { RuntimeOptions } from "../../../src/entries/index.ts";
import { MegatronSchedule } from "../../../src/entries/optim.ts";
import { runTiny, Workspace } from "../../fixtures/run-tiny.ts";

const job = new URL("../../fixtures/jobs/growing.ts", import.meta.url);

describe("a batch that grows", () => {
  const workspace = new Workspace();
  afterAll(() => workspace[Symbol.dispose]());

  async function train(options: RuntimeOptions, config: Readonly<Record<string, unknown>> = {}) {
    const { losses, error, events } = await runTiny(workspace, options, config, job);
    const steps = events.filter((event) => event.kind === "step.finished");
    return { losses, error, steps };
  }

  it("takes its samples in turn, in more micro-batches of one size, on any ranks and stages, and after a resume", async () => {
    const dir = workspace.path("run");
    const options = { ranks: 2, zero: 3, accumulation: 3 } as const;
    const two = await train({ ...options, checkpoint: { dir, everySteps: 3 } });
    expect(two.error).toBeUndefined();
    // 16 tokens a sample.
    expect(two.steps.map(({ numTokens = 0 }) => numTokens / 16)).toEqual([4, 4, 8, 12, 12, 12, 12]);
    // Rates follow from samples: after 0 and 4 of the 8 of the warm-up, 8, then 16, 28, 40 and 52 of 100.
    const rates = [0, 0.5, 1, ...[16, 28, 40, 52].map((taken) => 1 - (taken - 8) / 92)];
    for (const [step, rate] of rates.entries())
      expect(two.steps[step]?.learningRate).toBeCloseTo(rate * 1e-2, 12);

    expect((await train({ ...options, zero: 0 })).losses).toEqual(two.losses);
    const resumed = await train({ ...options, resume: join(dir, stepFolder(3)) });
    expect(resumed.losses.slice(3)).toEqual(two.losses.slice(3));
    const staged = await train({ ranks: 2, pp: 2, zero: 0, accumulation: 6 });
    expect(staged.losses).toHaveLength(7);
    for (const [step, loss] of two.losses.entries()) expect(staged.losses[step]).toBeCloseTo(loss, 5);

    // Until it grows it is a batch of 4, to the bit.
    const plain = await train({ ranks: 2, zero: 3 }, { batch: 4, steps: 2 });
    expect(two.losses.slice(0, 2)).toEqual(plain.losses);
  });

  it("is refused before anything is spawned where replicas cannot share what it grows by", async () => {
    const { error } = await train({ ranks: 2, zero: 0, accumulation: 2 });
    expect(error?.message).toContain("multiples of 6, a micro-batch of each replica, got 4 by 4");
    const { error: beyond } = await train({ ranks: 1 }, { batch: 10 });
    expect(beyond?.message).toContain("to reach 10 in equal increments, got 4 by 4");
  });

  it("has Megatron's rates, which are counted in samples", () => {
    const rampUp = { start: 4, increment: 4, samples: 16 };
    const schedule = new MegatronSchedule(
      { lr: 1 },
      { style: "constant", batchSize: 12, warmupSamples: 40, decaySamples: 100, rampUp },
    );
    expect([1, 2, 3, 4, 5, 6].map((step) => schedule.lrAt(step) * 40)).toEqual([0, 4, 8, 16, 28, 40]);
  });
});
