import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { lossesOf, type Outcome, runTiny, Workspace } from "../../fixtures/run-tiny.ts";

const _ = false;
const steps = 8;
/** Rank 1 overflows at its third loss. */
const fault = { fault: "overflow", faultAt: 2 };
const scaled = { ranks: 2, steps, lossScale: { kind: "torch", scale: 1024, growthInterval: 3 } } as const;

function stepsOf({ events }: Outcome) {
  return events.flatMap((event) => (event.kind === "step.finished" ? [event] : []));
}

describe("a scaled loss", () => {
  const workspace = new Workspace();
  const unclipped = { ...fault, clipNorm: 0 };
  let outcome: Outcome;
  let unclippedOutcome: Outcome;

  beforeAll(async () => {
    outcome = await runTiny(workspace, { ...scaled, zero: 3 }, fault);
    unclippedOutcome = await runTiny(workspace, { ...scaled, zero: 3 }, unclipped);
  });
  afterAll(() => workspace[Symbol.dispose]());

  it("trains to the same bits as one that is not scaled, for a power of two in float32", async () => {
    const plain = await lossesOf(workspace, { ranks: 2, zero: 3, steps });
    expect(await lossesOf(workspace, { ranks: 2, zero: 3, steps, lossScale: 2 ** 10 })).toEqual(plain);
  });

  it("skips a step in which one rank's gradient overflows, float32 gradients too, and halves the scale", () => {
    expect(outcome.error).toBeUndefined();
    expect(stepsOf(outcome).map(({ skipped }) => skipped)).toEqual([_, _, true, _, _, _, _, _]);
    expect(stepsOf(outcome).map(({ lossScale }) => lossScale)).toEqual([
      1024, 1024, 1024, 512, 512, 512, 1024, 1024,
    ]);
    expect(outcome.losses.every(Number.isFinite)).toBe(true);
  });

  it("does not advance the schedule at a skipped step", () => {
    const rates = stepsOf(outcome).map(({ learningRate }) => learningRate);
    expect(rates.slice(0, 5)).toEqual([1, 2, 3, 3, 4].map((update) => (1e-2 * update) / 5));
  });

  it("leaves parameters and optimizer state as they were, byte for byte", async () => {
    const dir = workspace.path("before");
    await runTiny(workspace, { ...scaled, zero: 3, steps: 3, checkpoint: { dir, everySteps: 1 } }, fault);
    const [before, after] = await Promise.all(
      ["step-000002", "step-000003"].map((name) => tensorsOf(join(dir, name))),
    );
    expect(after).toEqual(before);
  });

  it.each([0, 2])("is skipped alike at level %i, clipped or not", async (zero) => {
    const clipped = await runTiny(workspace, { ...scaled, zero }, fault);
    expect(clipped.error).toBeUndefined();
    expect(clipped.losses).toEqual(outcome.losses);
    const here = await runTiny(workspace, { ...scaled, zero }, unclipped);
    expect(here.error).toBeUndefined();
    expect(here.losses).toEqual(unclippedOutcome.losses);
    expect(stepsOf(here).map(({ skipped }) => skipped)).toEqual([_, _, true, _, _, _, _, _]);
  });

  it.each([
    ["tensor-parallel ranks", { tp: 2, ranks: 4 }],
    ["pipeline stages", { pp: 2, ranks: 2 }],
  ])("is skipped together by %s, though one alone overflows", async (_name, parts) => {
    const run = await runTiny(
      workspace,
      { ...scaled, ...parts, zero: 1, steps: 5 },
      { ...fault, accumulation: 2 },
    );
    expect(run.error).toBeUndefined();
    const steps = stepsOf(run);
    const at = steps.findIndex(({ skipped }) => skipped);
    expect(steps.filter(({ skipped }) => skipped)).toHaveLength(1);
    expect(steps[at + 1]).toMatchObject({ lossScale: 512, learningRate: steps[at]?.learningRate });
    expect(run.losses.every(Number.isFinite)).toBe(true);
  });

  it("goes on from a checkpoint after the skipped step with its scale and its schedule", async () => {
    const dir = workspace.path("saved");
    await runTiny(workspace, { ...scaled, zero: 3, steps: 4, checkpoint: { dir, everySteps: 1 } }, fault);
    for (const name of ["step-000003", "step-000004"]) {
      const resumed = await runTiny(
        workspace,
        { ...scaled, zero: 2, resume: join(dir, name) },
        { fault: "" },
      );
      expect(resumed.error).toBeUndefined();
      const whole = stepsOf(outcome).slice(-stepsOf(resumed).length);
      const facts = (run: typeof whole) =>
        run.map(({ lossNats, lossScale, learningRate }) => [lossNats, lossScale, learningRate]);
      expect(facts(stepsOf(resumed))).toEqual(facts(whole));
    }
  });

  it("refuses a gradient that is not finite where the loss is not scaled", async () => {
    const { error } = await runTiny(workspace, { ranks: 2, steps }, fault);
    expect(error).toMatchObject({ code: "GRADIENT_NOT_FINITE" });
    expect(error?.message).toMatch(/got NaN, first in block root/);
  });

  it("gives up after a hundred skipped steps in a row, and says so", async () => {
    const { error, events } = await runTiny(
      workspace,
      { ranks: 2, steps: 120, lossScale: { kind: "torch" } },
      { ...fault, faultAt: -1, layers: 1 },
    );
    expect(error?.message).toMatch(/\[step 101\] .*101 steps in a row/);
    const skipped = events.filter((event) => event.kind === "step.finished" && event.skipped);
    expect(skipped).toHaveLength(100);
  });
});

async function tensorsOf(folder: string): Promise<Record<string, string>> {
  const files = ["model.safetensors", "optimizer.safetensors"];
  return Object.fromEntries(
    await Promise.all(
      files.map(async (file) => [file, (await readFile(join(folder, file))).toString("hex")]),
    ),
  );
}
