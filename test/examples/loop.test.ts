import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import { Runtime } from "../../src/entries/index.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const source = readFileSync(join(root, "examples/hello/loop.ts"), "utf8");
const cache = mkdtempSync(join(tmpdir(), "troupe-test-"));
const before = process.env.TROUPE_CACHE;
process.env.TROUPE_CACHE = cache;
afterAll(() => {
  if (before === undefined) delete process.env.TROUPE_CACHE;
  else process.env.TROUPE_CACHE = before;
  rmSync(cache, { recursive: true, force: true });
});

async function train(name: string): Promise<number[]> {
  await using runtime = await Runtime.spawn({ ranks: 2, zero: 3, threadsPerRank: 1, warmStandby: false });
  const losses: number[] = [];
  runtime.on("step.finished", ({ step, lossNats }) => {
    losses[step - 1] = lossNats;
  });
  // A text that stays: each sentence of the README moves the losses.
  const data = join(root, "LICENSE");
  await runtime.run(new URL(`../../examples/hello/${name}.ts`, import.meta.url), { data });
  return losses;
}

describe("examples/hello/loop.ts", () => {
  it("is what the guide to loops shows, in at most 20 lines", () => {
    expect(readFileSync(join(root, "docs/guide/own-loop.md"), "utf8")).toContain(`\`\`\`ts\n${source}\`\`\``);
    expect(source.trimEnd().split("\n").length).toBeLessThanOrEqual(20);
  });

  it("learns, and has the bits of the job beside it on 2 ranks at ZeRO 3", async () => {
    const losses = await train("loop");
    expect(losses).toHaveLength(60);
    expect(losses[0]).toBeGreaterThan(5);
    expect(losses.at(-1)).toBeLessThan(3.3);
    expect(losses).toEqual(await train("job"));
  });
});
