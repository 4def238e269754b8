import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import { type EventOf, Runtime } from "../../src/entries/index.ts";
import { learnVowels } from "../fixtures/docs/live.ts";

const data = fileURLToPath(new URL("../../README.md", import.meta.url));
const cache = mkdtempSync(join(tmpdir(), "troupe-test-"));
const before = process.env.TROUPE_CACHE;
process.env.TROUPE_CACHE = cache;
afterAll(() => {
  if (before === undefined) delete process.env.TROUPE_CACHE;
  else process.env.TROUPE_CACHE = before;
  rmSync(cache, { recursive: true, force: true });
});

async function train(name: string, config: { steps: number; data?: string }) {
  await using runtime = await Runtime.spawn({
    ranks: 2,
    zero: 3,
    threadsPerRank: 1,
    warmStandby: false,
    checkpoint: { dir: join(cache, name) },
  });
  const losses: number[] = [];
  const evaluations: EventOf<"evaluation.finished">[] = [];
  runtime.on("step.finished", ({ lossNats }) => losses.push(lossNats));
  runtime.on("evaluation.finished", (event) => evaluations.push(event));
  await runtime.run(new URL(`../fixtures/docs/${name}.ts`, import.meta.url), config);
  return { losses, evaluations };
}

it("the script of live models learns from a reward", async () => {
  const rewards = await learnVowels(data, 30);
  expect(rewards[0]).toBeLessThan(0.5);
  expect(rewards.at(-1)).toBeGreaterThan(0.8);
});

describe("the jobs that pages show parts of", () => {
  it("losses and optimizers: labels that are ignored, a backbone frozen at first, scores", async () => {
    const { losses, evaluations } = await train("losses", { steps: 20 });
    expect(losses).toHaveLength(20);
    expect(losses.at(-1)).toBeLessThan(losses[0] as number);
    expect(evaluations.map(({ metrics }) => metrics?.accuracy)).toEqual([
      expect.any(Number),
      expect.any(Number),
    ]);
  });

  it("loops: ends by itself or at its last step, and saves the best state by name", async () => {
    const { losses } = await train("loops", { steps: 20, data });
    expect(losses).toHaveLength(20);
    expect(losses.at(-1)).toBeLessThan(losses[0] as number);
  });
});
