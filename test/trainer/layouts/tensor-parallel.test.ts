import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RuntimeOptions } from "../../../src/entries/index.ts";
import { expectNear } from "../../fixtures/expect-near.ts";
import { lossesOf, runTiny, towerJob, Workspace } from "../../fixtures/run-tiny.ts";

const steps = 10;
const job = { heads: 4 };

describe("tensor parallelism", () => {
  const workspace = new Workspace();
  let oneRank: readonly number[] = [];

  beforeAll(async () => {
    oneRank = await lossesOf(workspace, { ranks: 1, zero: 0, steps }, job);
  });
  afterAll(() => workspace[Symbol.dispose]());

  const train = (options: RuntimeOptions, config: Readonly<Record<string, unknown>> = {}) =>
    lossesOf(workspace, { zero: 0, steps, ...options }, { ...job, ...config });

  /** Sums over features are split and added up: float32 rounding of some 1e-7 a step, which training lets grow. */
  const numDigits = 5;

  it.each([
    { ranks: 2, tp: 2 },
    { ranks: 3, tp: 3 }, // of four heads
    { ranks: 4, tp: 4 },
    { ranks: 2, tp: 2, sequenceParallel: true },
    { ranks: 4, tp: 4, sequenceParallel: true },
    { ranks: 2, tp: 2, sequenceParallel: true, overlapChunks: 2 },
  ])("trains %o to the losses of one rank", async (options) => {
    expectNear(await train(options), oneRank, numDigits);
  });

  // Level 3 is in test/matrix, with split sequences.
  it("gives two replicas of two ranks the same bits at ZeRO 0, 1 and 2", async () => {
    const losses = await train({ ranks: 4, tp: 2, zero: 0 });
    for (const zero of [1, 2]) expect(await train({ ranks: 4, tp: 2, zero })).toEqual(losses);
  });

  it("draws dropout as one rank does", async () => {
    const dropout = { dropout: 0.2 };
    expectNear(await train({ ranks: 2, tp: 2 }, dropout), await train({ ranks: 1 }, dropout), numDigits);
    expectNear(
      await train({ ranks: 2, tp: 2, sequenceParallel: true }, dropout),
      await train({ ranks: 1 }, dropout),
      numDigits,
    );
  });

  it("splits a user's own modules as the job's plan says, with dropout and smoothed labels", async () => {
    const tower = (options: RuntimeOptions) =>
      lossesOf(workspace, { zero: 0, steps, ...options }, {}, towerJob);
    const plain = await tower({ ranks: 1 });
    expectNear(await tower({ ranks: 2, tp: 2 }), plain, numDigits);
    expectNear(await tower({ ranks: 4, tp: 4, sequenceParallel: true, overlapChunks: 2 }), plain, numDigits);
    expectNear(await tower({ ranks: 4, tp: 2, zero: 3 }), await tower({ ranks: 2 }), numDigits);
  });

  it("scales LAMB's directions by the norms of complete parameters", async () => {
    const lamb = { optimizer: "LAMB", vocab: 257 }; // padding counts for nothing
    const plain = await train({ ranks: 1 }, lamb);
    expectNear(await train({ ranks: 2, tp: 2 }, lamb), plain, numDigits);
    expectNear(await train({ ranks: 4, tp: 2, zero: 3 }, lamb), plain, numDigits);
  });

  it("refuses Adafactor, whose rows and columns it would cut, before a rank is started", async () => {
    const adafactor = { ...job, optimizer: "Adafactor" };
    const { error, events } = await runTiny(workspace, { ranks: 2, tp: 2, steps }, adafactor);
    expect(error).toMatchObject({ code: "OPTIMIZER_OPTION" });
    expect(events.map(({ kind }) => kind)).not.toContain("run.started");
  });

  it("recomputes to the same bits", async () => {
    expect(await train({ ranks: 2, tp: 2, recompute: true })).toEqual(await train({ ranks: 2, tp: 2 }));
  });

  it("saves complete parameters, which any other layout resumes from", async () => {
    const dir = workspace.path("split");
    const padded = { ...job, vocab: 257 }; // words that the ranks do not divide: padding is not saved
    const options = { zero: 3, steps, checkpoint: { dir, everySteps: 5 } } as const;
    const split = await runTiny(workspace, { ...options, ranks: 2, tp: 2 }, padded);
    expect(split.error).toBeUndefined();
    for (const layout of [{ ranks: 1 }, { ranks: 2 }, { ranks: 4, tp: 4 }]) {
      const resumed = await runTiny(workspace, { ...layout, steps, resume: `${dir}/step-000005` }, padded);
      expect(resumed.error).toBeUndefined();
      expectNear(resumed.losses.slice(5), split.losses.slice(5), numDigits);
    }
  });

  it("restarts when a rank is lost, though the others wait for it in a collective", async () => {
    const dir = workspace.path("restarted");
    const fault = { fault: "exit", faultAt: 6, faultOnce: workspace.path("struck") };
    const options = { ranks: 2, tp: 2, zero: 3, steps, checkpoint: { dir, everySteps: 2 } };
    const disturbed = await runTiny(workspace, options, { ...job, ...fault });
    expect(disturbed.error).toBeUndefined();
    expect(disturbed.losses).toEqual(await train({ ranks: 2, tp: 2, zero: 3 }));
  });

  it("trains two replicas of two stages of two ranks each", async () => {
    const config = { layers: 4, accumulation: 2 };
    const plain = await train({ ranks: 1 }, { ...config, accumulation: 4 });
    expectNear(await train({ ranks: 8, tp: 2, pp: 2, zero: 3 }, config), plain, numDigits);
  });
});
