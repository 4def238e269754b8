import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { Runtime } from "../../src/entries/index.ts";
import { loadJob } from "../../src/job/index.ts";

const folder = new URL("../../examples/", import.meta.url);

describe("examples that are copied", () => {
  it.each(["mrpc", "digits", "speech", "lora", "lemmas", "own", "chat"])(
    "%s is a job with a page of its own",
    async (name) => {
      const job = await loadJob(new URL(`${name}/job.ts`, folder).href);
      expect(job.training.length).toBeLessThanOrEqual(2);
      expect(readdirSync(fileURLToPath(new URL(`${name}/`, folder)))).toContain("README.md");
    },
  );

  it("tell two spirals apart, on 2 ranks", async () => {
    await using runtime = await Runtime.spawn({ ranks: 2, zero: 3 });
    const losses: number[] = [];
    runtime.on("step.finished", ({ lossNats }) => losses.push(lossNats));
    await runtime.run(new URL("own/job.ts", folder));
    expect(losses[0]).toBeGreaterThan(0.5);
    expect(losses.at(-1)).toBeLessThan(0.1);
  });
});
