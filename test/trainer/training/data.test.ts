import { existsSync, readFileSync } from "node:fs";
import { afterAll, describe, expect, it } from "vitest";
import type { RuntimeOptions } from "../../../src/entries/index.ts";
import { runTiny, Workspace } from "../../fixtures/run-tiny.ts";

const answersJob = new URL("../../fixtures/jobs/answers.ts", import.meta.url);
const samplesJob = new URL("../../fixtures/jobs/samples.ts", import.meta.url);

describe("a run on samples that come later", () => {
  const workspace = new Workspace();
  afterAll(() => workspace[Symbol.dispose]());

  const run = async (options: RuntimeOptions, config: Record<string, unknown> = {}) => {
    const { events, losses, error } = await runTiny(workspace, options, config, samplesJob);
    const evaluated = events.flatMap((event) =>
      event.kind === "evaluation.finished" ? [[event.step, event.split, event.lossNats]] : [],
    );
    return { losses, error, evaluated };
  };

  it("lasts for its epochs, evaluates every split that it names, and does not depend on the layout", async () => {
    const log = workspace.path("built");
    const plain = await run({ ranks: 1, accumulation: 2 });
    expect(plain.error).toBeUndefined();
    expect(plain.losses).toHaveLength(5); // two epochs of ten samples, four a step
    expect(plain.evaluated.map(([step, split]) => [step, split])).toEqual([
      [5, "validation"],
      [5, "test"],
    ]);
    expect(await run({ ranks: 2 })).toEqual(plain);
    expect(await run({ ranks: 2, pp: 2, accumulation: 2 }, { log })).toEqual(plain);
    const built = readFileSync(log, "utf8").trim().split("\n");
    // The first is built once more to see which stage needs what.
    expect(built.filter((line) => line !== "train 0")).toEqual(
      [...new Set(built)].filter((line) => line !== "train 0"),
    );
  });

  it.each([
    [
      { evaluate: "dev" },
      /expected a split named dev with samples in sines, got train \(10 samples\), validation/,
    ],
    [{ epochs: -1 }, /expected epochs to be ≥ 0/],
  ])("refuses %o before anything is spawned", async (config, message) => {
    const { error, losses } = await run({ ranks: 2 }, config);
    expect(error?.message).toMatch(message);
    expect(losses).toEqual([]);
  });
});

describe("data whose functions answer what they cannot mean", () => {
  const workspace = new Workspace();
  afterAll(() => workspace[Symbol.dispose]());

  it.each([
    ["no dataset", /data\(…\) to give \{ facts.*got an array/],
    [
      "splits",
      /got splits\.train\.numSamples: NaN; splits\.validation\.numSamples: undefined; batch: "later"/,
    ],
    ["facts", /got facts that are not plain data: .*could not be cloned/],
  ])("is refused by name before anything is planned: %s", async (answer, message) => {
    const log = workspace.path(answer);
    const { error } = await runTiny(workspace, { ranks: 1 }, { answer, log }, answersJob);
    expect(error).toMatchObject({ code: "DATA_INVALID", message: expect.stringMatching(message) });
    expect(existsSync(log)).toBe(false);
  });

  it.each([
    ["tokens", /countTokens\(…\) to give a finite number of at least 0, got a Tensor/],
    ["fingerprint", /fingerprint\(\) to give a text, a number, true or false as files, got an array/],
  ])(
    "a mistake of the data is reported by its function's name when it is called: %s",
    async (answer, message) => {
      const { error } = await runTiny(workspace, { ranks: 1 }, { answer }, answersJob);
      expect(error).toMatchObject({ code: "DATA_INVALID", message: expect.stringMatching(message) });
    },
  );

  it("a batch whose promise never settles is reported as data that does not come", async () => {
    const { error } = await runTiny(
      workspace,
      { ranks: 1, deadlineMs: 8_000 },
      { answer: "never" },
      answersJob,
    );
    expect(error).toMatchObject({ code: "DATA_PENDING", fields: { split: "train", position: 0 } });
    expect(error?.message).toMatch(/batch\("train", 0, \d\) of the job's data to give a batch within 8 s/);
  });
});
