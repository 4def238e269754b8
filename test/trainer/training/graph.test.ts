// Runs whose blocks are programs have the bits of operators that are issued singly; `npm run matrix -- --graph exact` tries every row.
import { afterAll, describe, expect, it } from "vitest";
import type { RuntimeOptions } from "../../../src/entries/index.ts";
import { lossesOf, runTiny, Workspace } from "../../fixtures/run-tiny.ts";

const loop = new URL("../../fixtures/jobs/tiny-loop.ts", import.meta.url);

describe("with blocks as programs", () => {
  const workspace = new Workspace();
  afterAll(() => workspace[Symbol.dispose]());

  it.each<[string, RuntimeOptions, Readonly<Record<string, unknown>>, URL?]>([
    [
      "recomputed, with dropout, in micro-batches, under autocast",
      { ranks: 2, zero: 3, recompute: true, precision: "amp-bf16" },
      { layers: 2, batch: 4, dropout: 0.1, accumulation: 2 },
    ],
    [
      "a loop of its own on stages, with offloaded moments",
      { ranks: 2, pp: 2, offload: { optimizer: "host" } },
      { layers: 2, batch: 4, accumulation: 2 },
      loop,
    ],
    [
      "weights of low precision on one rank, evaluated between steps",
      { ranks: 1, precision: "bf16" },
      { layers: 2, batch: 4, evaluateEvery: 2 },
    ],
  ])("a run has the same losses: %s", async (_, options, config, job) => {
    const told = await runTiny(workspace, { ...options, steps: 6, graph: "exact" }, config, job);
    expect(told.error).toBeUndefined();
    expect(told.events.filter(({ kind }) => kind === "block.unrecorded")).toEqual([]);
    expect(told.events.filter(({ kind }) => kind === "block.recorded")).not.toEqual([]);
    expect(told.losses).toEqual(await lossesOf(workspace, { ...options, steps: 6 }, config, job));
  });

  it("a run of expert layers, which read how many tokens come, has the same losses and says so once", async () => {
    const options = { ranks: 2, steps: 4 };
    const config = { layers: 2, batch: 4, experts: 2 };
    const told = await runTiny(workspace, { ...options, graph: "exact" }, config);
    expect(told.losses).toEqual(await lossesOf(workspace, options, config));
    const unrecorded = told.events.filter(({ kind }) => kind === "block.unrecorded");
    expect(unrecorded).toHaveLength(1);
  });
});
