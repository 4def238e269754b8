import { afterAll, describe, expect, it } from "vitest";
import type { RuntimeOptions } from "../../../src/entries/index.ts";
import { lossesOf, runTiny, Workspace } from "../../fixtures/run-tiny.ts";

const ownJob = new URL("../../fixtures/jobs/own.ts", import.meta.url);

describe("a job with pieces of its own", () => {
  const workspace = new Workspace();
  afterAll(() => workspace[Symbol.dispose]());

  const losses = (options: RuntimeOptions, config: Record<string, unknown>) =>
    lossesOf(workspace, options, config, ownJob);

  it("a dropout that layers share draws a new mask in each call, the same under every layout and when recomputed", async () => {
    const dropout = { dropout: 0.3 };
    const { losses: plain, events } = await runTiny(
      workspace,
      { ranks: 1, zero: 0, accumulation: 2 },
      dropout,
      ownJob,
    );
    const differing = events.flatMap((event) =>
      event.kind === "step.finished" ? [event.metrics?.differing] : [],
    );
    expect(differing).toHaveLength(10);
    // Two masks differ at 2 · 0.3 · 0.7 of all places.
    for (const share of differing) expect(Math.abs((share ?? 0) - 0.42)).toBeLessThan(0.06);
    for (const options of [
      { ranks: 1, zero: 0, accumulation: 2, recompute: true },
      { ranks: 2, zero: 3, recompute: ["outer", "dropout"] },
      { ranks: 2, pp: 2, accumulation: 2, recompute: true },
      { ranks: 2, pp: 2, chunks: 2, accumulation: 2, schedule: "interleaved" },
    ] as const satisfies RuntimeOptions[]) {
      expect(await losses(options, dropout), JSON.stringify(options)).toEqual(plain);
    }
    expect(await losses({ ranks: 1, zero: 0, accumulation: 2 }, { dropout: 0.29 })).not.toEqual(plain);
  });

  it("trains with its own initializer and optimizer to the same digits at every level, offloaded, and resumed", async () => {
    const own = { optimizer: "signMomentum" };
    const plain = await losses({ ranks: 1, zero: 0, accumulation: 2 }, own);
    expect(plain.at(-1)).toBeLessThan((plain[0] ?? 0) - 0.1);
    expect(plain).not.toEqual(await losses({ ranks: 1, zero: 0, accumulation: 2 }, {}));
    for (const zero of [0, 1, 2, 3])
      expect(await losses({ ranks: 2, zero }, own), `level ${zero}`).toEqual(plain);
    const offloaded = { ranks: 2, zero: 3, offload: { optimizer: "host" } } as const;
    expect(await losses(offloaded, own)).toEqual(plain);
    const checkpoint = { dir: workspace.path("saved") };
    await losses({ ranks: 2, zero: 2, checkpoint, steps: 4 }, own);
    const rest = await losses({ ranks: 1, zero: 0, accumulation: 2, resume: checkpoint.dir }, own);
    expect(rest.slice(4)).toEqual(plain.slice(4));
  });

  it("starts a parameter that tensor-parallel ranks split as one that they do not", async () => {
    const [whole = 0] = await losses({ ranks: 1, zero: 0, accumulation: 2 }, {});
    const [split = 0] = await losses({ ranks: 2, tp: 2, accumulation: 2 }, { steps: 1 });
    expect(split).toBeCloseTo(whole, 5); // products are summed in another order
  });
});
