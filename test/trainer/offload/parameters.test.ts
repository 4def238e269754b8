import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { Worker } from "node:worker_threads";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { memory, PAGE_BYTES, resetPeakMemory } from "../../../src/compute/tensor/index.ts";
import { Runtime, type RuntimeOptions, type TroupeEvent } from "../../../src/entries/index.ts";
import { atEachStep, lossesOf, runTiny, tinyJob, Workspace } from "../../fixtures/run-tiny.ts";

const workspace = new Workspace();
const dir = workspace.path("disk");
beforeAll(() => void mkdirSync(dir));
afterAll(() => workspace[Symbol.dispose]());

const nvme = { parameters: "nvme", dir } as const;
const layers = 6;

/** A layer of the tiny GPT and the root, on one rank: their parameters, each aligned, padded to complete chunks. */
const layerNumel = 13_312;
const rootNumel = 9_216;

const pages = (bytes: number) => Math.ceil(bytes / PAGE_BYTES) * PAGE_BYTES;

describe("offloaded parameters", () => {
  it.each<[string, RuntimeOptions, Record<string, unknown>, Partial<typeof nvme>?]>([
    ["on one rank, not clipped", {}, { clipNorm: 0 }],
    ["on three ranks with no block ahead", { ranks: 3, prefetchBytes: 0 }, { layers, batch: 6 }],
    ["of bf16, not clipped", { ranks: 2, precision: "bf16", prefetchBytes: 2e5 }, { layers, clipNorm: 0 }],
    ["rounded by chance", { ranks: 2, precision: "bf16", rounding: "stochastic", prefetchBytes: 0 }, {}],
    [
      "recomputed and accumulated, half the optimizer's state beside them in files",
      { ranks: 2, precision: "bf16", recompute: true, prefetchBytes: 6e4 },
      { layers, batch: 8, accumulation: 2 },
      { optimizer: "nvme", ratio: 0.5 } as object,
    ],
    [
      "that another actor updates, which asks all ranks for their share",
      { ranks: 2, prefetchBytes: 0 },
      { layers, optimizer: "Adafactor" },
      { optimizer: "nvme" } as object,
    ],
    [
      "split over two chunks of each of two stages",
      { ranks: 2, pp: 2, chunks: 2, prefetchBytes: 0 },
      { accumulation: 2, layers: 4 },
    ],
    ["in processes", { ranks: 2, placement: "process", prefetchBytes: 0 }, { layers }],
  ])("give the bits of resident ones %s", async (_what, given, config, offload = {}) => {
    const options = { zero: 3, steps: 5, ...given } as const;
    const resident = await lossesOf(workspace, options, config);
    expect(await lossesOf(workspace, { ...options, offload: { ...nvme, ...offload } }, config)).toEqual(
      resident,
    );
  });

  it.each([
    ["fp32", 4],
    ["bf16", 2],
  ] as const)(
    "are in memory only while they are used: of %s the one that is computed with and the one that is updated, beside the root",
    async (precision, bytes) => {
      const options = { ranks: 1, zero: 3, steps: 6, precision, prefetchBytes: 0, trace: true } as const;
      const resident = await usedBy(options);
      expect(resident.peakBytes).toBe(bytes * (rootNumel + layers * layerNumel));
      const offloaded = await usedBy({ ...options, offload: nvme });
      expect(offloaded.peakBytes).toBe(bytes * rootNumel + 2 * pages(bytes * layerNumel));
      for (let block = 1; block <= layers; block++) {
        // Once filled and once a step; the run's end waits for no write.
        expect([6, 7]).toContain(offloaded.numOf("store", block));
        // At most for forward, for backward and, where it is its own master, for the update; and for each evaluation.
        expect(offloaded.numOf("bring", block)).toBeLessThanOrEqual(6 * (bytes === 4 ? 3 : 2) + 2);
        expect(offloaded.numOf("bring", block)).toBeGreaterThan(0);
      }
    },
  );

  it("take of a window what it holds: as much ahead of the computation, and as much behind it", async () => {
    const [layerBytes, numAhead] = [4 * layerNumel, 2];
    const window = { prefetchBytes: numAhead * layerBytes };
    const { peakBytes } = await usedBy(
      { ranks: 1, zero: 3, steps: 6, ...window, offload: nvme },
      { layers: 10 },
    );
    expect(peakBytes).toBeLessThanOrEqual(4 * rootNumel + (1 + 2 * numAhead) * layerBytes);
  });

  it("come and go while the ranks compute, and are never computed with half-way", async () => {
    const slowdown = { transferMs: 4 };
    const prefetchBytes = 3 * 4 * layerNumel;
    const options = {
      ranks: 2,
      zero: 3,
      steps: 4,
      trace: true,
      prefetchBytes,
      slowdown,
      offload: nvme,
    } as const;
    const { events, error } = await runTiny(workspace, options, { layers, batch: 8 });
    expect(error).toBeUndefined();
    const activities = events.filter((event) => event.kind === "activity.finished");
    const uses = activities.filter((each) => each.activity === "compute" && each.blockIndex > 0);
    const brought = activities.filter((each) => each.activity === "bring");
    expect(uses.length).toBeGreaterThan(0);
    for (const use of uses) {
      const onItsWay = brought.filter(
        (way) => way.blockIndex === use.blockIndex && way.beginMs < use.endMs && use.endMs < way.endMs,
      );
      expect(onItsWay).toEqual([]);
    }
    // Some other block is computed with while one is on its way.
    const hidden = brought.filter((way) =>
      uses.some(
        (use) => use.blockIndex !== way.blockIndex && way.beginMs < use.endMs && use.endMs < way.endMs,
      ),
    );
    expect(hidden.length).toBeGreaterThan(0);
  });

  it("are saved and gone on with as resident ones are, and the other way round", async () => {
    const saved = async (name: string, offload?: RuntimeOptions["offload"], resume?: string) => {
      const outcome = await runTiny(workspace, {
        ...{ ranks: 2, zero: 3, steps: 6, prefetchBytes: 0 },
        checkpoint: { dir: workspace.path(name), everySteps: 2 },
        ...(offload && { offload }),
        ...(resume !== undefined && { resume: join(workspace.path(resume), "step-000004") }),
      });
      expect(outcome.error).toBeUndefined();
      return outcome.losses.slice(4);
    };
    const losses = await saved("resident");
    expect(await saved("offloaded", nvme)).toEqual(losses);
    expect(await saved("to", nvme, "resident")).toEqual(losses);
    expect(await saved("from", undefined, "offloaded")).toEqual(losses);
  });

  it("are looked at as resident ones are", async () => {
    const inspect = async (offload?: RuntimeOptions["offload"]) => {
      const given = { ranks: 2, zero: 3, steps: 1, prefetchBytes: 0, threadsPerRank: 1 };
      await using runtime = await Runtime.spawn({ ...given, ...(offload && { offload }) });
      let summaries: Promise<unknown> | undefined;
      runtime.events$.subscribe((event) => {
        if (event.kind === "run.started") summaries = runtime.inspectModel("*");
      });
      await runtime.run(tinyJob, { data: workspace.text, cache: workspace.path("cache"), layers });
      return summaries;
    };
    expect(await inspect(nvme)).toEqual(await inspect());
  });

  it.each(["shard-0", "shard-1"])(
    "come back with the group when %s dies, and the losses with them",
    async (name) => {
      const options = { ranks: 2, zero: 3, steps: 10, prefetchBytes: 0 } as const;
      const undisturbed = await lossesOf(workspace, options);
      let worker: Worker | undefined;
      const remember = (started: Worker) => {
        if (started.threadName === name) worker ??= started;
      };
      process.on("worker", remember);
      const outcome = await runTiny(workspace, { ...options, offload: nvme }, {}, tinyJob, (event) => {
        if (event.kind === "step.finished" && event.step === 4) void worker?.terminate();
      });
      process.off("worker", remember);
      expect(outcome.error).toBeUndefined();
      expect(outcome.events.some((event) => event.kind === "actor.restarted")).toBe(true);
      expect(outcome.losses).toEqual(undisturbed);
      expect(readdirSync(dir)).toEqual([]);
    },
  );
});

type Activity = Extract<TroupeEvent, { kind: "activity.finished" }>;

/** The most that a run's parameters have taken between its third and its fifth step, and how often blocks were moved. */
async function usedBy(options: RuntimeOptions, config: Readonly<Record<string, unknown>> = { layers }) {
  let peakBytes = 0;
  const sink = atEachStep((step) => {
    if (step === 3) resetPeakMemory();
    if (step === 5) peakBytes = memory().peakByTag.parameters ?? 0;
  });
  const { events, error } = await runTiny(workspace, { ...options, sinks: [sink] }, config);
  expect(error).toBeUndefined();
  const numOf = (activity: Activity["activity"], block: number) =>
    events.filter(
      (event) =>
        event.kind === "activity.finished" && event.activity === activity && event.blockIndex === block,
    ).length;
  return { peakBytes, numOf };
}
