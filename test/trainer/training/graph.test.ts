// Runs whose blocks are programs have the bits of operators that are issued singly; `npm run matrix -- --graph exact` tries every row.
import { afterAll, describe, expect, it } from "vitest";
import type { RuntimeOptions, Tensor } from "../../../src/entries/index.ts";
import { expertsJob, lossesOf, runTiny, Workspace } from "../../fixtures/run-tiny.ts";
import { rangeAt, withModel } from "../live/script.ts";

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
    ["split over two ranks", { ranks: 2, tp: 2 }, { layers: 2, heads: 4, batch: 4, dropout: 0.1 }],
    [
      "split over two ranks that share positions and recompute, in chunks",
      { ranks: 2, tp: 2, sequenceParallel: true, overlapChunks: 2, recompute: true },
      { layers: 2, heads: 4, batch: 4, dropout: 0.1, evaluateEvery: 2 },
    ],
    [
      "recomputed in parts, with dropout",
      { ranks: 2, zero: 3, recompute: ["attn", "mlp"] },
      { layers: 2, batch: 4, dropout: 0.1 },
    ],
    ["experts on two ranks", { ranks: 2, ep: 2 }, { layers: 2, batch: 4, experts: 2, dropout: 0.1 }],
  ])("a run has the same losses: %s", async (_, options, config, job) => {
    const outcome = await runTiny(workspace, { ...options, steps: 6, graph: "exact" }, config, job);
    expect(outcome.error).toBeUndefined();
    expect(outcome.events.filter(({ kind }) => kind === "block.unrecorded")).toEqual([]);
    const steps = outcome.events.filter((event) => event.kind === "step.finished");
    // From the fourth step on every call of a block is a replay, and none is recorded.
    const numCalls = steps.map(({ blockCalls }) => [blockCalls?.recorded, (blockCalls?.replayed ?? 0) > 0]);
    expect(numCalls.slice(3)).toEqual(Array(3).fill([0, true]));
    expect(outcome.losses).toEqual(await lossesOf(workspace, { ...options, steps: 6 }, config, job));
  });

  it.each<[string, RuntimeOptions]>([
    ["one rank", { ranks: 1 }],
    ["two ranks that split layers", { ranks: 2, tp: 2 }],
    ["two ranks at level 3", { ranks: 2, zero: 3 }],
  ])("a live model trains, is called and writes as without: %s", async (_, layout) => {
    const outcome = await Promise.all(
      (["off", "exact"] as const).map(async (graph) => {
        const made: unknown[] = [];
        const events = await withModel(workspace, { ...layout, graph }, { dropout: 0 }, async (model) => {
          for (let step = 0; step < 4; step++) {
            made.push(await model.accumulate("loss", rangeAt(step)));
            const { logProbs } = (await model.call("logProbs", rangeAt(step))).rows;
            made.push([...(logProbs as Tensor).toTypedArray()]);
            // One prompt is read in one pass, its two samples side by side behind it.
            for (const seed of [step, step + 10])
              made.push(
                await model.generate([[49, 32, 50]], { maxNewTokens: 30, samples: 2, seed, temperature: 1 }),
              );
            await model.step();
          }
        });
        return { made, events };
      }),
    );
    const [singly, replayed] = outcome;
    expect(replayed?.made).toEqual(singly?.made);
    const events = replayed?.events ?? [];
    expect(events.filter(({ kind }) => kind === "block.unrecorded")).toEqual([]);
    const steps = events.filter((event) => event.kind === "step.finished");
    // Two texts of 28 passes through two blocks, at the least.
    expect(steps.at(-1)?.blockCalls?.replayed).toBeGreaterThan(2 * 28 * 2);
    expect(steps.at(-1)?.blockCalls?.recorded).toBe(0);
  });

  it("a run of expert layers, which read how many tokens come, has the same losses and says so once", async () => {
    const options = { ranks: 2, steps: 4 };
    const config = { layers: 2, batch: 4, dropTokens: false };
    const outcome = await runTiny(workspace, { ...options, graph: "exact" }, config, expertsJob);
    expect(outcome.losses).toEqual(await lossesOf(workspace, options, config, expertsJob));
    const unrecorded = outcome.events.filter(({ kind }) => kind === "block.unrecorded");
    expect(unrecorded).toMatchObject([{ reason: "a value that is read between operators" }]);
  });
});
