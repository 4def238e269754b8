import { afterAll, describe, expect, it } from "vitest";
import { type HeldMemory, Runtime } from "../../src/entries/index.ts";
import { lossesOf, runTiny, tinyJob, Workspace } from "../fixtures/run-tiny.ts";

describe("two runtimes of one process", () => {
  const workspace = new Workspace();
  afterAll(() => workspace[Symbol.dispose]());

  it("train side by side to the losses that each has alone, though the actors of one end before", async () => {
    const runs = [2, 100].map((steps) => ({ ranks: 2, zero: 3, steps }));
    const alone = await lossesOf(workspace, { ranks: 2, zero: 3, steps: 100 });
    const outcomes = await Promise.all(runs.map((options) => runTiny(workspace, options)));
    for (const { losses, error, events } of outcomes) {
      expect(error).toBeUndefined();
      expect(losses).toEqual(alone.slice(0, losses.length));
      expect(events.filter(({ kind }) => kind === "run.started")).toHaveLength(1);
    }
    expect(outcomes.map(({ losses }) => losses.length)).toEqual([2, 100]);
  });

  it("count the memory of their own ranks alone, also one after the other", async () => {
    const held = async (width: number) => {
      await using runtime = await Runtime.spawn({
        threadsPerRank: 1,
        warmStandby: false,
        ranks: 1,
        steps: 3,
      });
      let asked: Promise<readonly HeldMemory[]> | undefined;
      runtime.events$.subscribe(({ kind }) => {
        if (kind === "run.started") asked = runtime.inspectMemory();
      });
      await runtime.run(tinyJob, { data: workspace.text, cache: workspace.path("cache"), width });
      return ((await asked) ?? []).map(({ byKind }) => byKind.optimizer?.peakBytes);
    };
    const [wide, narrow] = [await held(128), await held(32)] as [number[], number[]];
    // Most of a model's state grows with the square of its width.
    expect(wide[0]).toBeGreaterThan(8 * (narrow[0] as number));
    expect(narrow[0]).toBeGreaterThan(0);
  });
});
