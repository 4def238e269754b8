import { afterAll, describe, expect, it, vi } from "vitest";
import { canInject } from "../fixtures/can-inject.ts";
import { lossesOf, Workspace } from "../fixtures/run-tiny.ts";
import { Chance } from "./chance.ts";
import { damageEverywhere } from "./damage.ts";
import { canStarve, failWhileTraining, starveWhileTraining } from "./saves.ts";

// A little of `npm run chaos -- saves flips`. Programs under strace load libtorch slowly.
vi.setConfig({ testTimeout: 240_000 });
const workspace = new Workspace();
afterAll(() => workspace[Symbol.dispose]());

describe("a checkpoint that is damaged", () => {
  it("any damage is noticed, with file, tensor and place", async () => {
    const options = { every: 97, numDataBits: 100, chance: new Chance(5) };
    for (const { kind, numTried, missed } of await damageEverywhere(workspace.path("damaged"), options)) {
      expect(numTried, kind).toBeGreaterThan(0);
      expect(missed, kind).toEqual([]);
    }
  });
});

describe.skipIf(!canInject)(
  "a save that fails while training (skipped where strace is not there or not allowed)",
  () => {
    it("a failing save is reported once with its cause, leaves nothing behind, and changes no loss", async () => {
      const undisturbed = await lossesOf(workspace, { ranks: 2, zero: 3, steps: 12 });
      const { numMet, wrong } = await failWhileTraining(workspace, undisturbed, "fsync", "EIO", 2);
      expect(wrong).toEqual([]);
      expect(numMet).toBeGreaterThan(0);
    });
  },
);

describe.skipIf(!canStarve)(
  "a run that can open no file for a while (skipped where there is no prlimit)",
  () => {
    it("the run goes on, reports the saves that failed, and leaves nothing of them", async () => {
      const undisturbed = await lossesOf(workspace, { ranks: 2, zero: 3, steps: 12 });
      const { wrong } = await starveWhileTraining(workspace, undisturbed);
      expect(wrong).toEqual([]);
    });
  },
);
