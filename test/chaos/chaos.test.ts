import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { nativeInfo } from "../../src/entries/tensor.ts";
import { lossesOf, Workspace } from "../fixtures/run-tiny.ts";
import { Chance } from "./chance.ts";
import { killPrograms, stopRuns } from "./cycles.ts";
import type { Placement } from "./faults.ts";
import { type Hang, hangOnce } from "./hang.ts";
import { trainUnderFaults, undisturbedLosses } from "./training.ts";

// A little of `npm run chaos`, which does the same for hours. Programs that load libtorch, many times over.
vi.setConfig({ testTimeout: 240_000, hookTimeout: 120_000 });
const workspace = new Workspace();
afterAll(() => workspace[Symbol.dispose]());

describe("a run whose actors are struck at random", () => {
  it.each<Placement>(["thread", "process"])(
    "a run with random faults has the undisturbed losses, bit for bit: a %s for each rank",
    async (placement) => {
      const steps = 60;
      const undisturbed = await undisturbedLosses(workspace, steps);
      const when = { steps: [8, 25, 40] };
      const disturbance = { placement, seed: 3, steps, stepMs: 5, when, saveEverySteps: 10 };
      const survived = await trainUnderFaults(workspace, undisturbed, disturbance);
      expect(survived.error).toBeUndefined();
      expect(survived.numOtherLosses).toBe(0);
      expect(survived.numOpenSaves).toBe(0);
      expect([...survived.numFaults.values()].reduce((sum, count) => sum + count)).toBe(when.steps.length);
    },
  );
});

describe("programs and runs that are ended at random", () => {
  it("killed programs leave no process, shared memory, port or file behind", async () => {
    const { left } = await killPrograms(workspace, 2, new Chance(8));
    expect(left).toEqual([]);
  });

  it("stopped runs leave no descriptor behind in a program that goes on", async () => {
    const { left } = await stopRuns(workspace, 2, new Chance(9));
    expect(left).toEqual([]);
  });
});

describe("a rank that hangs", () => {
  const spread = { steps: 12, atStep: 4, stallMs: 500 };
  let undisturbed: readonly number[] = [];
  let undisturbedTogether: readonly number[] | undefined;
  beforeAll(async () => {
    undisturbed = await lossesOf(workspace, { ranks: 2, zero: 3, steps: spread.steps });
  });

  it.each<[Hang, Placement]>([
    ["hang", "thread"],
    ["block", "thread"],
    ["hang", "process"],
    ["SIGSTOP", "process"],
  ])(
    "a hanging rank is named with its operation when its time is up, and the run goes on to the same losses: %s, %s",
    async (hang, placement) => {
      const { stalled, afterMs, losses } = await hangOnce(workspace, hang, placement, spread);
      expect(stalled).toMatchObject({ actor: "rank-1", op: { sequence: expect.any(Number) } });
      expect(stalled.op?.sequence).toBeGreaterThanOrEqual(spread.atStep);
      expect(stalled.ageMs).toBeGreaterThanOrEqual(afterMs);
      expect(losses).toEqual(undisturbed);
    },
  );

  it.skipIf(!nativeInfo().gloo).each<[Hang, Placement]>([
    ["hang", "thread"],
    ["hang", "process"],
    ["SIGSTOP", "process"],
  ])(
    "only the hanging rank is named, not the peer that waits in native code, with the collective that it missed: %s, %s",
    async (hang, placement) => {
      const named = await hangOnce(workspace, hang, placement, { ...spread, tp: 2 });
      const { stalled, awaited, numRestored, losses } = named;
      // Whatever else lived in its process fell with it, and is no reason of its own.
      expect(numRestored).toBe(1);
      expect(stalled).toMatchObject({ actor: "rank-1", collective: { group: "tp 0-1" } });
      expect(awaited).toMatchObject({ group: "tp 0-1", isWaiting: true });
      const numBehind = (awaited?.sequence ?? 0) - (stalled.collective?.sequence ?? 0);
      // A process may be stopped also within a collective.
      expect(hang === "SIGSTOP" ? [0, 1] : [1]).toContain(numBehind);
      undisturbedTogether ??= await lossesOf(workspace, { ranks: 2, tp: 2, steps: spread.steps });
      expect(losses).toEqual(undisturbedTogether);
    },
  );
});
