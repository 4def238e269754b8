import { afterAll, describe, expect, it, vi } from "vitest";
import { Workspace } from "../fixtures/run-tiny.ts";
import { Chance } from "./chance.ts";
import { strikeAtMoments } from "./moments.ts";

// A little of `npm run chaos -- moments`. Each program loads libtorch.
vi.setConfig({ testTimeout: 360_000 });

describe("a run that is ended at random moments and resumed", () => {
  const workspace = new Workspace();
  afterAll(() => workspace[Symbol.dispose]());

  it("a run ended at random moments loses nothing reported as saved, has the undisturbed losses, and leaves nothing behind", async () => {
    const report = await strikeAtMoments(workspace, { numMoments: 5, chance: new Chance(21) });
    expect(report.wrong).toEqual([]);
    expect(report.numStruck).toBe(5);
    expect(report.numResumed).toBeGreaterThan(0);
  });
});
