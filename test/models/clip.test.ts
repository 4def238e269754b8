import { afterAll, describe, expect, it } from "vitest";
import type { RuntimeOptions } from "../../src/entries/index.ts";
import { lossesOf, Workspace } from "../fixtures/run-tiny.ts";

const pairs = new URL("../fixtures/jobs/pairs.ts", import.meta.url);

describe("CLIP's loss among replicas", () => {
  const workspace = new Workspace();
  afterAll(() => workspace[Symbol.dispose]());
  const losses = (options: RuntimeOptions, config = {}) =>
    lossesOf(workspace, { ...options, steps: 6 }, config, pairs);

  it.each<[string, RuntimeOptions]>([
    ["two replicas", { ranks: 2 }],
    ["four, their parameters split", { ranks: 4, zero: 3 }],
    ["two, of two ranks each that split its layers", { ranks: 4, tp: 2, zero: 1 }],
    ["two, in processes", { ranks: 2, zero: 2, placement: "process" }],
  ])("is one replica's with the complete batch, gradients too: %s", async (_, options) => {
    const [got, whole] = [await losses(options), await losses({ ranks: 1 })];
    expect(got).toHaveLength(6);
    // Another order of sums, some 1e-7, which six steps of training let grow.
    for (const [step, loss] of whole.entries()) expect(Math.abs((got[step] ?? 0) - loss)).toBeLessThan(1e-5);
  });

  it("is that of two replicas where the last stage of each has a pipeline before it", async () => {
    // Both make the same two micro-batches, each contrasted by itself.
    const config = { accumulation: 2 };
    const [got, whole] = [await losses({ ranks: 4, pp: 2 }, config), await losses({ ranks: 2 }, config)];
    expect(got).toHaveLength(6);
    for (const [step, loss] of whole.entries()) expect(Math.abs((got[step] ?? 0) - loss)).toBeLessThan(1e-5);
  });

  it("is another one where each replica looks among its own batch alone", async () => {
    const [own, whole] = [await losses({ ranks: 2 }, { among: "own" }), await losses({ ranks: 1 })];
    // One pair is found more easily among four than among eight: ln 2 less by chance.
    expect((whole[0] ?? 0) - (own[0] ?? 0)).toBeGreaterThan(0.3);
  });
});
