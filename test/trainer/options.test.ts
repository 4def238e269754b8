import { describe, expect, it } from "vitest";
import { configure, Runtime, type RuntimeOptions } from "../../src/trainer/index.ts";
import { tinyJob } from "../fixtures/run-tiny.ts";

describe("Runtime.spawn", () => {
  const refused: [string, RuntimeOptions, RegExp][] = [
    ["no ranks", { ranks: 0 }, /ranks to be a whole number from 1 to 256: got 0/],
    ["half a rank", { ranks: 1.5 }, /ranks .*: got 1\.5/],
    ["a ZeRO level out of range", { zero: -1 }, /level 0, 1, 2 or 3: got -1/],
    ["a negative seed", { seed: -1 }, /seed to be a whole number ≥ 0: got -1/],
    ["negative steps", { steps: -5 }, /steps to be a whole number ≥ 0: got -5/],
    ["a negative window", { prefetchBytes: -1 }, /prefetchBytes to be ≥ 0: got -1/],
    ["no threads", { threadsPerRank: 0 }, /threadsPerRank .*: got 0/],
    [
      "saves that never come",
      { checkpoint: { dir: "x", everySteps: 0 } },
      /checkpoint\.everySteps .*: got 0/,
    ],
    ["NaN as a deadline", { deadlineMs: Number.NaN }, /deadlineMs .*: got NaN/],
  ];

  it.each(refused)("refuses %s", async (_what, options, message) => {
    await expect(Runtime.spawn(options)).rejects.toThrow(message);
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
