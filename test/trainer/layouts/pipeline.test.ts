import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RuntimeOptions } from "../../../src/entries/index.ts";
import { expectNear } from "../../fixtures/expect-near.ts";
import { lossesOf, runTiny, Workspace } from "../../fixtures/run-tiny.ts";

const steps = 10;
const job = { accumulation: 4, layers: 4 };

describe("pipeline parallelism", () => {
  const workspace = new Workspace();
  let oneRank: readonly number[] = [];

  beforeAll(async () => {
    oneRank = await lossesOf(workspace, { ranks: 1, zero: 0, steps }, job);
  });
  afterAll(() => workspace[Symbol.dispose]());

  const train = (options: RuntimeOptions, config: Readonly<Record<string, unknown>> = {}) =>
    lossesOf(workspace, { zero: 0, steps, ...options }, { ...job, ...config });

  /** The tied embedding's two gradients are added in another order than on one rank: some 1e-7 a step, which grows. */
  const expectLikeOneRank = (losses: readonly number[], expected: readonly number[]) => {
    expect(losses[0]).toBe(expected[0]);
    expectNear(losses, expected, 5);
  };

  it.each([
    { ranks: 2, pp: 2, schedule: "gpipe" },
    { ranks: 2, pp: 2, schedule: "1f1b" },
    { ranks: 2, pp: 2, schedule: "interleaved", chunks: 2 },
    { ranks: 4, pp: 4, schedule: "1f1b" },
  ] as const)("trains $pp stages under $schedule to the losses of one rank", async (options) => {
    expectLikeOneRank(await train(options), oneRank);
  });

  it("gives every schedule the same bits", async () => {
    const losses = await train({ ranks: 2, pp: 2, schedule: "gpipe" });
    expect(await train({ ranks: 2, pp: 2, schedule: "1f1b" })).toEqual(losses);
    expect(await train({ ranks: 2, pp: 2, schedule: "interleaved", chunks: 2 })).toEqual(losses);
  });

  // Level 2 is in test/matrix, with interleaved stages.
  it("gives two replicas of two stages the same bits at ZeRO 0, 1 and 3", async () => {
    const halves = { accumulation: 2 };
    const losses = await train({ ranks: 4, pp: 2, zero: 0 }, halves);
    for (const zero of [1, 3]) expect(await train({ ranks: 4, pp: 2, zero }, halves)).toEqual(losses);
    expectLikeOneRank(losses, oneRank);
  });

  it("equals one rank to the bit where no parameter is tied between stages", async () => {
    const untied = { tied: false };
    expect(await train({ ranks: 2, pp: 2 }, untied)).toEqual(await train({ ranks: 1 }, untied));
  });

  it("gives a stage what follows the layers, where they are one too few for all: the same bits, dropout included", async () => {
    const untied = { tied: false, dropout: 0.2, evaluateEvery: 5 };
    const one = await train({ ranks: 1 }, { ...untied, layers: 1 });
    expect(await train({ ranks: 2, pp: 2 }, { ...untied, layers: 1 })).toEqual(one);
    expect(await train({ ranks: 2, pp: 2, zero: 3, recompute: true }, { ...untied, layers: 1 })).toEqual(one);
    const three = await train({ ranks: 1 }, { ...untied, layers: 3 });
    const interleaved = { ranks: 2, pp: 2, schedule: "interleaved", chunks: 2 } as const;
    expect(await train(interleaved, { ...untied, layers: 3 })).toEqual(three);
  });

  it("recomputes blocks to the same bits, dropout included", async () => {
    const dropout = { dropout: 0.2 };
    const plain = await train({ ranks: 1 }, dropout);
    expect(await train({ ranks: 1, recompute: true }, dropout)).toEqual(plain);
    const staged = await train({ ranks: 2, pp: 2 }, dropout);
    expect(await train({ ranks: 2, pp: 2, recompute: true }, dropout)).toEqual(staged);
    expectLikeOneRank(staged, plain);
  });

  it("recomputes parts of blocks to the same bits, dropout included", async () => {
    const dropout = { dropout: 0.2 };
    const plain = await train({ ranks: 1 }, dropout);
    expect(await train({ ranks: 1, recompute: ["attn", "mlp"] }, dropout)).toEqual(plain);
    expect(await train({ ranks: 2, pp: 2, zero: 3, recompute: ["attn"] }, dropout)).toEqual(
      await train({ ranks: 2, pp: 2 }, dropout),
    );
    await expect(train({ ranks: 1, recompute: ["attention"] })).rejects.toThrow(
      "[recompute] expected one of the modules of block transformer.h.0",
    );
  });

  it("evaluates and saves from all stages, and goes on in another layout", async () => {
    const evaluateEvery = 5;
    const dir = workspace.path("staged");
    const config = { ...job, evaluateEvery };
    const options = { zero: 3, checkpoint: { dir, everySteps: 5 } } as const;
    const staged = await runTiny(workspace, { ...options, ranks: 2, pp: 2, steps }, config);
    expect(staged.error).toBeUndefined();
    const evaluations = staged.events.filter((event) => event.kind === "evaluation.finished");
    expect(evaluations.map((event) => event.step)).toEqual([5, 10]);
    for (const layout of [{ ranks: 1 }, { ranks: 2 }, { ranks: 4, pp: 4 }]) {
      const resumed = await runTiny(
        workspace,
        { ...layout, steps, resume: `${dir}/step-000005` },
        { ...config, accumulation: layout.ranks === 2 ? 2 : 4 },
      );
      expect(resumed.error).toBeUndefined();
      expectLikeOneRank(resumed.losses.slice(5), staged.losses.slice(5));
    }
  });

  // The conductor orders held-out batches in parts, and the second part is under way before the first has ended.
  it("evaluates more batches than one order holds to the loss of one rank", async () => {
    const config = { ...job, evaluateEvery: 1, evaluationSamples: 24 };
    const evaluate = async (options: RuntimeOptions) => {
      const outcome = await runTiny(workspace, { steps: 2, zero: 0, deadlineMs: 20_000, ...options }, config);
      expect(outcome.error).toBeUndefined();
      return outcome.events.filter((event) => event.kind === "evaluation.finished");
    };
    const whole = await evaluate({ ranks: 1 });
    expect(whole.map(({ numTokens }) => numTokens)).toEqual([24 * 16, 24 * 16]);
    for (const options of [{ schedule: "1f1b" }, { schedule: "interleaved", chunks: 2 }] as const) {
      const staged = await evaluate({ ranks: 2, pp: 2, ...options });
      expect(staged.map(({ numTokens }) => numTokens)).toEqual([24 * 16, 24 * 16]);
      expectLikeOneRank(
        staged.map(({ lossNats }) => lossNats),
        whole.map(({ lossNats }) => lossNats),
      );
    }
  });

  it("restarts all stages from the last checkpoint when one is lost", async () => {
    const dir = workspace.path("restarted");
    const fault = { fault: "exit", faultAt: 22, faultOnce: workspace.path("struck") };
    const options = { ranks: 2, pp: 2, zero: 3, steps, checkpoint: { dir, everySteps: 2 } };
    const disturbed = await runTiny(workspace, options, { ...job, ...fault });
    expect(disturbed.error).toBeUndefined();
    expect(disturbed.events.some((event) => event.kind === "actor.restarted")).toBe(true);
    expect(disturbed.losses).toEqual(await train({ ranks: 2, pp: 2, zero: 3 }));
  });

  it("writes the text of one rank, every stage taking part", async () => {
    const job = new URL("../../fixtures/jobs/tiny-sample.ts", import.meta.url);
    const textOf = async (options: RuntimeOptions, layers = 4) => {
      const { events, error } = await runTiny(workspace, { steps: 1, ...options }, { layers }, job);
      expect(error).toBeUndefined();
      return events.find((event) => event.kind === "text.generated")?.text;
    };
    const text = await textOf({ ranks: 1 });
    expect(text).toHaveLength(12);
    expect(await textOf({ ranks: 2, pp: 2 })).toBe(text);
    expect(await textOf({ ranks: 2, pp: 2, chunks: 2, accumulation: 2 })).toBe(text);
    expect(await textOf({ ranks: 2, pp: 2 }, 1)).toBe(await textOf({ ranks: 1 }, 1));
  });

  it("refuses more stages than there are layers before anything is spawned", async () => {
    const { error, events } = await runTiny(workspace, { ranks: 8, pp: 8 }, { ...job, batch: 8 });
    expect(error?.message).toContain("expected a layer or more for each of pp 8 but the last, got 4 layers");
    expect(error?.message).toContain("nearest that work");
    expect(events.some((event) => event.kind === "actor.started" && event.actor.startsWith("rank"))).toBe(
      false,
    );
  });
});
