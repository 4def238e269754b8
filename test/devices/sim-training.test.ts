import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { stepFolder } from "../../src/entries/checkpoint.ts";
import type { RuntimeOptions } from "../../src/entries/index.ts";
import { lossesOf, runTiny, Workspace } from "../fixtures/run-tiny.ts";
import { holds, Matrix } from "../matrix/matrix.ts";
import { switches } from "../matrix/switches.ts";

const workspace = new Workspace();
afterAll(() => workspace[Symbol.dispose]());

const named = (...names: string[]) =>
  names.map((name) => {
    const found = switches.find((each) => each.name === name);
    if (found === undefined) throw new Error(`no switch ${name}`);
    return found;
  });

// Combinations of most mechanisms that order work on a device; `npm run matrix -- --device sim` tries every pair.
describe("training on the pretend device has the CPU's bits", () => {
  const matrix = new Matrix(workspace, "sim:0");

  it.each([
    ["zero 3", "tp 2 sp", "dropout"],
    ["pp 2 × 2", "zero 1", "recompute", "offload half"],
    ["zero 2", "bf16 stochastic", "accumulate 2", "offload host"],
    ["own loop", "fp16", "ep 2"],
    ["amp-bf16", "tp 2 sp overlapped", "ragged targets"],
  ])("with %s and %s and more", async (...names) => {
    const outcome = await matrix.try(named(...names));
    expect(outcome.failure).toBeUndefined();
    expect(outcome).toSatisfy(holds);
  });

  // Four ranks on two devices: two share each, and what the others have is copied.
  const spread = new Matrix(workspace, "sim");
  it.each([
    ["zero 1", "accumulate 2", "clip inf"],
    ["zero 2", "bf16 stochastic", "offload host"],
    ["zero 3", "pp 2 × 2", "recompute", "ragged targets"],
    ["zero 3", "tp 2 sp overlapped", "fp16"],
    ["ep 2", "zero 1", "amp-bf16", "own loop"],
  ])("with %s and %s and more, spread over two", async (...names) => {
    const outcome = await spread.try(named(...names));
    expect(outcome.failure).toBeUndefined();
    expect(outcome).toSatisfy(holds);
  });

  // Programs there have the streams, events and poison of single operators; `npm run matrix -- --graph exact --device sim` tries all.
  it.each([
    ["zero 3", "dropout", "accumulate 2", "amp-bf16"],
    ["pp 2 × 2", "zero 1", "recompute", "offload half"],
    ["own loop", "fp16", "processes"],
  ])("with blocks as programs, %s and %s and more", async (...names) => {
    const outcome = await spread.try(named(...names, "graph exact"));
    expect(outcome.failure).toBeUndefined();
    expect(outcome.unrecorded).toEqual([]);
    expect(outcome).toSatisfy(holds);
  });

  // The same as graphs of the device: `TROUPE_DEVICE_GRAPHS=1 npm run matrix -- --graph exact --device sim` tries all.
  it.each([
    ["zero 3", "accumulate 2", "amp-bf16"],
    ["pp 2 × 2", "zero 1", "recompute", "offload half"],
    ["tp 2 sp", "zero 2"],
  ])("with blocks as graphs, %s and %s and more", async (...names) => {
    process.env.TROUPE_DEVICE_GRAPHS = "1";
    try {
      const outcome = await spread.try(named(...names, "graph exact"));
      expect(outcome.failure).toBeUndefined();
      expect(outcome.unrecorded).toEqual([]);
      expect(outcome).toSatisfy(holds);
    } finally {
      delete process.env.TROUPE_DEVICE_GRAPHS;
    }
  });

  it("and its scores, whichever devices the ranks that predict are on", async () => {
    const job = new URL("../fixtures/jobs/classifier.ts", import.meta.url);
    const scoresOf = async (options: RuntimeOptions, config: Readonly<Record<string, unknown>> = {}) => {
      const { events, error } = await runTiny(workspace, options, { floors: 2, ...config }, job);
      expect(error).toBeUndefined();
      return events.flatMap((event) => (event.kind === "evaluation.finished" ? [event.metrics] : []));
    };
    const scores = await scoresOf({ ranks: 1 });
    expect(scores).toHaveLength(6);
    expect(await scoresOf({ ranks: 2, zero: 3, device: "sim" })).toEqual(scores);
    const staged = { ranks: 4, pp: 2, zero: 1, device: "sim" } as const;
    expect(await scoresOf(staged, { accumulation: 2 })).toEqual(scores);
  });

  it("through a checkpoint, from the CPU to the device and back", async () => {
    const options = { ranks: 2, zero: 3 } as const;
    const whole = await lossesOf(workspace, { ...options, steps: 9 });
    const dir = workspace.path("run");
    const checkpoint = { dir, everySteps: 3 };
    const parts: (readonly number[])[] = [];
    for (const [steps, device] of [
      [3, "cpu"],
      [6, "sim"],
      [9, "cpu"],
    ] as const) {
      const resume = steps === 3 ? {} : { resume: join(dir, stepFolder(steps - 3)) };
      const run = await runTiny(workspace, { ...options, ...resume, device, steps, checkpoint });
      expect(run.error).toBeUndefined();
      parts.push(run.losses.slice(steps - 3));
    }
    expect(parts.flat()).toEqual(whole);
  });

  it("after a rank has died and the run went on from its last state", async () => {
    const options = { ranks: 2, zero: 2, steps: 8 } as const;
    const run = await runTiny(
      workspace,
      { ...options, device: "sim:0", checkpoint: { inMemoryEverySteps: 2 } },
      { fault: "exit", faultRank: 1, faultAt: 5, faultOnce: workspace.path("struck") },
    );
    expect(run.error).toBeUndefined();
    expect(run.losses).toEqual(await lossesOf(workspace, options));
  });
});
