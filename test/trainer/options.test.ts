import { describe, expect, it } from "vitest";
import { configure, Runtime, type RuntimeOptions } from "../../src/actors/trainer/index.ts";
import { planBatch } from "../../src/actors/trainer/plan/plan-run.ts";
import { trainingOf } from "../../src/actors/trainer/plan/training-plan.ts";
import { settle } from "../../src/job/options/index.ts";
import tiny from "../fixtures/jobs/tiny.ts";
import { tinyJob } from "../fixtures/run-tiny.ts";

describe("Runtime.spawn", () => {
  const refused: [string, RuntimeOptions, RegExp][] = [
    [
      "an option that is none",
      { rank: 4 } as object,
      /expected an option, got rank \(did you mean ranks\?\)$/,
    ],
    [
      "a delay that is none",
      { slowdown: { update: 4 } as object },
      /expected an option of slowdown, got update \(did you mean updateMs\?\)$/,
    ],
    [
      "a cadence that is none",
      { memory: { every: 4 } as never },
      /expected an option of memory, got every \(there are everySteps\)$/,
    ],
    ["no ranks", { ranks: 0 }, /ranks to be a whole number from 1 to 256, got 0/],
    ["half a rank", { ranks: 1.5 }, /ranks .*, got 1\.5/],
    ["a ZeRO level out of range", { zero: -1 }, /zero to be 0, 1, 2 or 3, or oss, sdp or fsdp, got -1/],
    ["a negative seed", { seed: -1 }, /seed to be a whole number ≥ 0, got -1/],
    ["negative steps", { steps: -5 }, /steps to be a whole number ≥ 0, got -5/],
    ["a negative window", { prefetchBytes: -1 }, /prefetchBytes to be a size ≥ 0 such as 64MB, got -1/],
    ["no threads", { threadsPerRank: 0 }, /threadsPerRank .*, got 0/],
    [
      "saves that never come",
      { checkpoint: { dir: "x", everySteps: 0 } },
      /checkpoint\.everySteps .*, got 0/,
    ],
    [
      "to save, and not where",
      { checkpoint: { everySteps: 5 } },
      /checkpoint\.dir to be a folder, got undefined \(it may be left out only with inMemoryEverySteps/,
    ],
    [
      "to keep files where there are none",
      { checkpoint: { inMemoryEverySteps: 5, keepLast: 2 } },
      /checkpoint\.dir to be a folder/,
    ],
    [
      "to empty a folder that is none",
      { checkpoint: { inMemoryEverySteps: 5, overwrite: true } },
      /checkpoint\.dir to be a folder/,
    ],
    [
      "ranks that write what the head keeps",
      { checkpoint: { dir: "x", inMemoryEverySteps: 5, writers: "ranks" } },
      /checkpoint\.writers to be left out with inMemoryEverySteps, got ranks \(in-memory copies are kept by the head/,
    ],
    [
      "to keep some of all",
      { checkpoint: { dir: "x", keepEverySteps: 5 } },
      /checkpoint\.keepEverySteps to be used with keepLast, got 5 \(without keepLast none are removed\)/,
    ],
    ["to keep none", { checkpoint: { dir: "x", keepLast: 0 } }, /checkpoint\.keepLast .*≥ 1, got 0/],
    [
      "another way to be busy",
      { checkpoint: { dir: "x", whenBusy: "hurry" as "wait" } },
      /checkpoint\.whenBusy to be wait or skip, got hurry/,
    ],
    [
      "no memory for a save",
      { checkpoint: { dir: "x", maxStagedBytes: 0 } },
      /checkpoint\.maxStagedBytes to be a size > 0 such as 8GB, got 0/,
    ],
    [
      "what saving does not know",
      { checkpoint: { dir: "x", often: true } as RuntimeOptions["checkpoint"] & object },
      /expected an option of checkpoint, got often \(there are dir, overwrite, everySteps, .*\)/,
    ],
    [
      "an option that a dashboard lacks",
      { dashboard: { prot: 80 } as object },
      /expected an option of dashboard, got prot \(did you mean port\?\)/,
    ],
    ["a port that is none", { dashboard: { port: -1 } }, /dashboard\.port .* from 0 to 65535, got -1/],
    [
      "to offload nothing in particular",
      { offload: { ratio: 0.5 } },
      /offload\.optimizer to be host or nvme, got undefined \(ratio alone/,
    ],
    [
      "another place than memory and disk",
      { offload: { optimizer: "cloud" as "host" } },
      /offload\.optimizer to be host or nvme, got cloud/,
    ],
    [
      "more than all",
      { offload: { optimizer: "host", ratio: 1.5 } },
      /offload\.ratio to be a share from 0 to 1, got 1\.5/,
    ],
    ["a file without a folder", { offload: { optimizer: "nvme" } }, /offload\.dir to be given with nvme/],
    [
      "a folder that is not there",
      { offload: { optimizer: "nvme", dir: "/nowhere/at/all" } },
      /offload\.dir to be a folder that can be written, got \/nowhere/,
    ],
    [
      "a folder for what goes into memory",
      { offload: { optimizer: "host", dir: "." } },
      /offload\.dir to be left out when nothing is offloaded to nvme/,
    ],
    [
      "turns that no pipeline takes",
      { chunks: 2 },
      /chunks to be used with pp ≥ 2, got 2 \(only pipeline stages hold several chunks\)/,
    ],
    [
      "overlap where nothing is gathered",
      { ranks: 2, tp: 2, overlapChunks: 2 },
      /overlapChunks to be used with sequenceParallel, got 2/,
    ],
    [
      "to offload what stays with the ranks",
      { offload: { optimizer: "host", gradients: "host" } as RuntimeOptions["offload"] & object },
      /expected an option of offload, got gradients \(there are optimizer, ratio, activations, parameters, dir\)/,
    ],
    [
      "parameters in the memory that they are in",
      { offload: { parameters: "host" as "nvme" } },
      /offload\.parameters to be nvme, got host \(on this device they already are in the host's memory\)/,
    ],
    [
      "to offload parameters that a step needs throughout",
      { zero: 2, offload: { parameters: "nvme", dir: "." } },
      /zero to be 3 where parameters are offloaded, got 2/,
    ],
    [
      "a share of what stays",
      { recompute: true, offload: { activations: "nvme", dir: ".", ratio: 0.5 } },
      /offload\.ratio to be left out without offload.optimizer/,
    ],
    [
      "activations in the memory that they are in",
      { recompute: true, offload: { activations: "host" as "nvme" } },
      /offload\.activations to be nvme, got host \(on this device they already are in the host's memory\)/,
    ],
    [
      "activations of which the most would stay",
      { offload: { activations: "nvme", dir: "." } },
      /recompute to be true where activations are offloaded, got false/,
    ],
    ["time to go back", { slowdown: { updateMs: -1 } }, /slowdown\.updateMs to be ≥ 0, got -1/],
    ["NaN as a deadline", { deadlineMs: Number.NaN }, /deadlineMs .*, got NaN/],
  ];

  it.each(refused)("refuses %s", async (_what, options, message) => {
    await expect(Runtime.spawn(options)).rejects.toThrow(message);
  });
});

describe("a job whose training", () => {
  const plan = async (training: object) => {
    const job = { ...tiny, training: () => ({ steps: 1, batchSize: 4, ...training }) };
    const data = {
      facts: { source: "text" },
      splits: { train: { numSamples: 10 } },
      fingerprint: {},
      files: {},
    };
    return planBatch(job, await trainingOf(job, tiny.config, data.facts), data, settle({}), undefined);
  };

  it.each([
    ["clips by another name", { clip: 1 }, /an option of the job's training, got clip \(/],
    ["evaluates after half a step", { evaluateEverySteps: 0.5 }, /evaluateEverySteps .* ≥ 1, got 0\.5/],
    ["evaluates on nothing", { evaluationSamples: 0 }, /evaluationSamples .* ≥ 1, got 0/],
    ["lasts for steps and epochs", { epochs: 2 }, /given in steps or in epochs, got both/],
    ["has no length", { steps: undefined }, /given in steps or in epochs, got neither/],
    ["goes back in time", { steps: undefined, epochs: -1 }, /epochs to be ≥ 0, got -1/],
    [
      "has several mistakes, all of which are reported",
      { stpes: 3, batchSize: "x", clipNorm: -1, accumulation: 0 },
      /\[training\] expected an option of the job's training, got stpes \(did you mean steps\?; also expected batchSize to be a whole number ≥ 1, got "x"; also expected accumulation to be a whole number ≥ 1, got 0; also expected clipNorm to be > 0, got -1\)/,
    ],
  ])("%s is refused", async (_what, training, message) => {
    await expect(plan(training)).rejects.toThrow(message);
  });

  it("a run of a number of epochs lasts until every sample was seen so often", async () => {
    expect((await plan({ steps: undefined, epochs: 2 })).steps).toBe(5);
    expect((await plan({ steps: undefined, epochs: 0.9 })).steps).toBe(3);
  });
});

describe("configure", async () => {
  const { default: job } = await import(tinyJob.href);

  it("replaces settings, reading texts as the type of their default", () => {
    const config = configure(job, { layers: "3", data: "text", dropout: 0.5 });
    expect(config).toMatchObject({ layers: 3, data: "text", dropout: 0.5, heads: 2 });
  });

  it.each([
    ["an unknown name", { layer: 3 }],
    ["a name of Object's own", { constructor: 1 }],
    ["a word for a number", { layers: "three" }],
    ["nothing for a number", { layers: "" }],
    ["NaN", { layers: Number.NaN }],
  ])("refuses %s", (_what, given) => {
    expect(() => configure(job, given)).toThrow(/\[job\] expected/);
  });
});
