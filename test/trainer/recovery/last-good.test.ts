import { existsSync, readdirSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { liveRefs } from "../../../src/compute/tensor/index.ts";
import { stepFolder } from "../../../src/entries/checkpoint.ts";
import type { RuntimeOptions } from "../../../src/entries/index.ts";
import { lossesOf, type Outcome, runTiny, Workspace } from "../../fixtures/run-tiny.ts";

const steps = 10;
const inMemory = { inMemoryEverySteps: 2 };

describe("a copy of the state in memory", () => {
  const workspace = new Workspace();
  let undisturbed: readonly number[] = [];

  beforeAll(async () => {
    undisturbed = await lossesOf(workspace, { ranks: 2, steps });
  });
  afterAll(() => workspace[Symbol.dispose]());

  let numRuns = 0;
  const dying = (options: RuntimeOptions, faultAt = 7): Promise<Outcome> => {
    const faultOnce = workspace.path(`died-${numRuns++}`);
    return runTiny(workspace, { ranks: 2, steps, ...options }, { fault: "exit", faultAt, faultOnce });
  };
  const restored = ({ events }: Outcome) =>
    events.flatMap((event) => (event.kind === "run.restored" ? [`${event.from} ${event.step}`] : []));

  it.each([
    { zero: 3 },
    { zero: 0 },
    { zero: 1, tp: 2, ranks: 4 },
    { zero: 3, precision: "bf16" },
    { zero: 2, offload: { optimizer: "host", ratio: 0.5 } },
    { zero: 3, placement: "process" },
  ] as const)(
    "a run goes back to the copy in memory after a rank dies, with the same losses to the bit: %j",
    async (options) => {
      const precise = !("precision" in options) && !("tp" in options);
      const expected = precise ? undisturbed : await lossesOf(workspace, { ranks: 2, steps, ...options });
      const outcome = await dying({ ...options, checkpoint: inMemory });
      expect(outcome.error).toBeUndefined();
      expect(outcome.losses).toEqual(expected);
      expect(restored(outcome)).toEqual(["memory 6"]);
      expect(liveRefs()).toBe(0);
    },
  );

  it("is taken before an older checkpoint, and an older copy is not taken before a newer checkpoint", async () => {
    const dir = workspace.path("both");
    const newerCopy = await dying({ checkpoint: { dir, everySteps: 4, inMemoryEverySteps: 3 } }, 7);
    expect(restored(newerCopy)).toEqual(["memory 6"]);
    expect(newerCopy.losses).toEqual(undisturbed);
    expect(readdirSync(dir)).toEqual(["latest", "run.json", ...[4, 8, 10].map(stepFolder)]);
  });

  it("the memory of the in-memory copy is reported", async () => {
    const { events } = await runTiny(workspace, { ranks: 2, steps: 4, checkpoint: inMemory });
    const copied = events.flatMap((event) => (event.kind === "checkpoint.copied" ? [event] : []));
    expect(copied.map(({ step }) => step)).toEqual([2, 4]);
    const [start] = events.flatMap((event) => (event.kind === "run.started" ? [event] : []));
    // Parameters and two moments, float32, and some padding of blocks.
    expect(copied[0]?.sizeBytes).toBeGreaterThanOrEqual(12 * (start?.numParameters ?? 0));
  });
});

describe("a state that is too large to be copied", () => {
  it("is refused before the first step, with the bytes it takes", async () => {
    using workspace = new Workspace();
    const checkpoint = { dir: workspace.path("run"), maxStagedBytes: 1000 };
    const outcome = await runTiny(workspace, { ranks: 2, steps: 2, checkpoint });
    expect(outcome.error).toMatchObject({ code: "CHECKPOINT_STAGING" });
    expect(outcome.error?.message).toMatch(/at most 1000 bytes, got \d{6}/);
    expect(outcome.losses).toEqual([]);
    expect(existsSync(workspace.path("run/latest"))).toBe(false);
  });
});
