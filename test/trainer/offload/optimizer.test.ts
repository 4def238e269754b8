import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Worker } from "node:worker_threads";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { liveRefs, memory } from "../../../src/compute/tensor/index.ts";
import type { RuntimeOptions, TroupeEvent } from "../../../src/entries/index.ts";
import { atEachStep, lossesOf, runTiny, tinyJob, Workspace } from "../../fixtures/run-tiny.ts";

const steps = 6;
const workspace = new Workspace();
const dir = workspace.path("disk");
beforeAll(() => void mkdirSync(dir));
afterAll(() => workspace[Symbol.dispose]());

const host = { optimizer: "host" } as const;
const nvme = { optimizer: "nvme", dir } as const;
const homes = [
  ["in memory", host],
  ["in a file", nvme],
] as const;

describe("an offloaded optimizer", () => {
  // Every home with every precision and clipping, every level with both of each; `npm run matrix` has the other pairs.
  it.each([
    { where: "in memory", offload: host, zero: 0, precision: "fp32", clipNorm: 1 },
    { where: "in memory", offload: host, zero: 0, precision: "bf16", clipNorm: 0 },
    { where: "in a file", offload: nvme, zero: 1, precision: "fp32", clipNorm: 1 },
    { where: "in a file", offload: nvme, zero: 1, precision: "bf16", clipNorm: 0 },
    { where: "in memory", offload: host, zero: 2, precision: "fp32", clipNorm: 0 },
    { where: "in memory", offload: host, zero: 2, precision: "bf16", clipNorm: 1 },
    { where: "in a file", offload: nvme, zero: 3, precision: "fp32", clipNorm: 0 },
    { where: "in a file", offload: nvme, zero: 3, precision: "bf16", clipNorm: 1 },
    { where: "half in a file", offload: { ...nvme, ratio: 0.5 }, zero: 3, precision: "fp32", clipNorm: 1 },
    { where: "half in a file", offload: { ...nvme, ratio: 0.5 }, zero: 3, precision: "bf16", clipNorm: 0 },
  ] as const)(
    "kept $where gives the bits of the resident one at level $zero: $precision, clipped to $clipNorm",
    async ({ offload, zero, precision, clipNorm }) => {
      const resident = await lossesOf(workspace, { ranks: 2, zero: 3, steps, precision }, { clipNorm });
      const options = { ranks: 2, zero, steps, precision, offload };
      expect(await lossesOf(workspace, options, { clipNorm })).toEqual(resident);
    },
  );

  it.each([
    ["Adafactor", nvme],
    ["LAMB", host],
    ["several", nvme],
    ["plain SGD", nvme],
  ])(
    "may be another than AdamW, also one that keeps nothing or asks all ranks for their share: %s",
    async (optimizer, offload) => {
      const options = { ranks: 2, zero: 3, steps: 4 } as const;
      const resident = await lossesOf(workspace, options, { optimizer });
      expect(await lossesOf(workspace, { ...options, offload }, { optimizer })).toEqual(resident);
    },
  );

  it("saves a checkpoint of the same bytes, and goes on from one of a resident run, and the other way round", async () => {
    const saved = async (name: string, offload: RuntimeOptions["offload"], resume?: string) => {
      const checkpoint = { dir: workspace.path(name), everySteps: 2 };
      const options = { ranks: 2, zero: 3, steps, precision: "bf16", checkpoint } as const;
      const outcome = await runTiny(workspace, {
        ...options,
        ...(offload === undefined ? {} : { offload }),
        ...(resume === undefined ? {} : { resume: join(workspace.path(resume), "step-000004") }),
      });
      expect(outcome.error).toBeUndefined();
      return outcome.losses.slice(4);
    };
    const bytesOf = (name: string) =>
      ["step-000002", "step-000006"].flatMap((step) =>
        ["model.safetensors", "optimizer.safetensors"].map((file) =>
          // A folder that a resumed run did not write is not there.
          readdirSync(workspace.path(name)).includes(step)
            ? readFileSync(join(workspace.path(name), step, file)).toString("base64")
            : undefined,
        ),
      );
    const losses = await saved("resident", undefined);
    for (const [where, offload] of homes) {
      expect(await saved(`offloaded ${where}`, offload)).toEqual(losses);
      expect(bytesOf(`offloaded ${where}`)).toEqual(bytesOf("resident"));
      expect(await saved(`to ${where}`, offload, "resident")).toEqual(losses);
    }
    // The bytes of both homes are the same: one says what becomes of either.
    expect(await saved("from a file", undefined, "offloaded in a file")).toEqual(losses);
    expect(bytesOf("from a file").slice(2)).toEqual(bytesOf("resident").slice(2));
  });

  it("is updated while the ranks go on: behind backward, and under the next forward", async () => {
    const overlapping = { ranks: 2, zero: 3, steps: 4, trace: true, slowdown: { updateMs: 30 } };
    const config = { layers: 4 };
    const clipped = await runTiny(workspace, { ...overlapping, offload: host }, config);
    const unclipped = await runTiny(workspace, { ...overlapping, offload: nvme }, { ...config, clipNorm: 0 });
    for (const { events, error } of [clipped, unclipped]) {
      expect(error).toBeUndefined();
      const trace = new Trace(events);
      // No rank computes with a block that any rank has not updated: what is hidden is never stale.
      for (const use of trace.of("rank", "compute").filter(({ step }) => step > 0)) {
        const updates = trace.of("offload", "update", use.step - 1, use.blockIndex);
        expect(updates).toHaveLength(2);
        for (const update of updates) expect(update.endMs).toBeLessThanOrEqual(use.beginMs);
      }
    }
    const last = 4;
    const hiddenUnderForward = [1, 2, 3].filter((step) => {
      const [forward] = new Trace(clipped.events).of("rank", "compute", step, 0);
      const [update] = new Trace(clipped.events).of("offload", "update", step - 1, last);
      return (forward?.beginMs ?? 0) < (update?.endMs ?? 0);
    });
    const hiddenBehindBackward = [0, 1, 2, 3].filter((step) => {
      const [update] = new Trace(unclipped.events).of("offload", "update", step, last);
      const [reduce] = new Trace(unclipped.events).of("shard", "reduce", step, 0);
      return (update?.beginMs ?? 0) < (reduce?.endMs ?? 0);
    });
    expect(hiddenUnderForward.length).toBeGreaterThan(0);
    expect(hiddenBehindBackward.length).toBeGreaterThan(0);
  });

  it("is gone from the shard's memory: in its place are three buffers of the largest block", async () => {
    const options = { ranks: 2, zero: 3, steps: 4, precision: "bf16" } as const;
    const resident = await memoryOf(options);
    const kept = resident.master + resident.optimizer;
    expect(resident).toMatchObject({ offload: 0, staging: 0 });
    // A master and two moments of four bytes.
    expect(resident.optimizer).toBe(2 * resident.master);
    expect(await memoryOf({ ...options, offload: host })).toMatchObject({
      master: 0,
      optimizer: 0,
      offload: kept,
      staging: 0,
    });
    const inFile = await memoryOf({ ...options, offload: nvme });
    expect(inFile).toMatchObject({ master: 0, optimizer: 0, offload: 0 });
    // The model's largest block, padded to two slices, twelve bytes an element; a page more a buffer to begin on one.
    expect(inFile.staging).toBe(3 * (12 * largestBlockNumel) + 2 * 3 * 4096);
  });

  it("runs hundreds of steps in the same memory, with nothing left under way", async () => {
    const at = new Map<number, number>();
    const sink = atEachStep((step) => {
      const { staging = 0, optimizer = 0, offload = 0, parameters = 0 } = memory().byTag;
      at.set(step, staging + optimizer + offload + parameters);
    });
    const options = { ranks: 2, zero: 3, steps: 300, offload: nvme, sinks: [sink] } as const;
    const outcome = await runTiny(workspace, options, { layers: 1 });
    expect(outcome.error).toBeUndefined();
    expect(at.get(300)).toBe(at.get(10));
    expect(liveRefs()).toBe(0);
  });

  it.each(homes)("that dies %s restarts the group, which repeats the losses", async (_where, offload) => {
    const undisturbed = await lossesOf(workspace, { ranks: 2, zero: 3, steps: 12 });
    let worker: Worker | undefined;
    const remember = (started: Worker) => {
      if (started.threadName === "offload-1") worker ??= started;
    };
    process.on("worker", remember);
    const outcome = await runTiny(
      workspace,
      { ranks: 2, zero: 3, steps: 12, offload },
      {},
      tinyJob,
      (event) => {
        if (event.kind === "step.finished" && event.step === 5) void worker?.terminate();
      },
    );
    process.off("worker", remember);
    expect(outcome.error).toBeUndefined();
    const restarted = outcome.events.flatMap((event) =>
      event.kind === "actor.restarted" ? event.actor : [],
    );
    expect(restarted.toSorted()).toEqual([
      "offload-0",
      "offload-1",
      "rank-0",
      "rank-1",
      "shard-0",
      "shard-1",
    ]);
    expect(outcome.losses).toEqual(undisturbed);
    expect(readdirSync(dir)).toEqual([]);
  });

  it("leaves nothing in its folder, not even when its process is killed", async () => {
    const script = fileURLToPath(new URL("../../fixtures/run-offloaded.ts", import.meta.url));
    const child = spawn(process.execPath, [script, dir], { stdio: ["ignore", "pipe", "inherit"] });
    await once(child.stdout, "data");
    expect(readdirSync(dir)).toEqual([]);
    child.kill("SIGKILL");
    await once(child, "exit");
    expect(readdirSync(dir)).toEqual([]);
  });
});

describe("gradient accumulation", () => {
  it("reduces each block once a step, however many micro-batches there are", async () => {
    const { events, error } = await runTiny(
      workspace,
      { ranks: 2, zero: 3, steps: 3, trace: true },
      { batch: 6, accumulation: 3 },
    );
    expect(error).toBeUndefined();
    const reductions = new Trace(events).of("shard", "reduce");
    const places = reductions.map(({ actor, step, blockIndex }) => `${actor} ${step} ${blockIndex}`);
    expect(new Set(places).size).toBe(places.length);
    expect(places).toHaveLength(2 * 3 * 3);
  });
});

type Activity = Extract<TroupeEvent, { kind: "activity.finished" }>;

/** The trace of a run. */
class Trace {
  readonly #activities: Activity[];

  constructor(events: readonly TroupeEvent[]) {
    this.#activities = events.filter((event) => event.kind === "activity.finished");
  }

  of(role: string, activity: Activity["activity"], step?: number, block?: number): Activity[] {
    return this.#activities.filter(
      (outcome) =>
        outcome.actor.startsWith(role) &&
        outcome.activity === activity &&
        (step === undefined || outcome.step === step) &&
        (block === undefined || outcome.blockIndex === block),
    );
  }
}

/** A layer of the tiny GPT: 12,704 parameters, each aligned, padded to two slices of complete chunks. */
const largestBlockNumel = 14_336;

/** Bytes by kind while a run is at its second step. */
async function memoryOf(options: RuntimeOptions) {
  let found = { master: 0, optimizer: 0, offload: 0, staging: 0 };
  const sink = atEachStep((step) => {
    const { master = 0, optimizer = 0, offload = 0, staging = 0 } = memory().byTag;
    if (step === 2) found = { master, optimizer, offload, staging };
  });
  const outcome = await runTiny(workspace, { ...options, sinks: [sink] });
  expect(outcome.error).toBeUndefined();
  return found;
}
