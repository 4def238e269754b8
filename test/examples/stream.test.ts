import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, describe, expect, it } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));

describe("examples/stream", () => {
  const cache = mkdtempSync(join(tmpdir(), "troupe-test-"));
  afterAll(() => rmSync(cache, { recursive: true, force: true }));

  it("hears of every fifth step and of the memory, and stops the run once the loss is low enough", async () => {
    const { stdout, stderr } = await promisify(execFile)(
      process.execPath,
      ["examples/stream/watch.ts", "4"],
      {
        cwd: root,
        env: { ...process.env, TROUPE_CACHE: cache },
      },
    );
    expect(stderr).toBe("");
    const steps = [...stdout.matchAll(/^step (\d+): (\d\.\d+) nats, overlap [01]\.\d\d$/gm)];
    expect(steps.map(([, step]) => Number(step))).toEqual(steps.map((_, index) => 1 + 5 * index));
    const losses = steps.map(([, , loss]) => Number(loss));
    // All but the last are above what is enough, and the run had 600 steps to make.
    expect(losses.slice(0, -1).every((loss) => loss >= 4)).toBe(true);
    expect(losses.at(-1)).toBeLessThan(4);
    expect(stdout).toMatch(/^rank 1 holds, in KiB: .*optimizer \d+/m);
    expect(stdout).toMatch(/^enough: \d\.\d{3} < 4 after \d+ steps\nevents lost: 0\n$/m);
  });
});
