import { readFileSync } from "node:fs";
import { afterAll, describe, expect, it } from "vitest";
import type { RuntimeOptions } from "../../src/index.ts";
import { runTiny, Workspace } from "../fixtures/run-tiny.ts";

const samplesJob = new URL("../fixtures/jobs/samples.ts", import.meta.url);

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
