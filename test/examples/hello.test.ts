import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, describe, expect, it } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));
const read = (path: string) => readFileSync(join(root, path), "utf8");

describe("examples/hello", () => {
  const cache = mkdtempSync(join(tmpdir(), "troupe-test-"));
  afterAll(() => rmSync(cache, { recursive: true, force: true }));

  it("learns the README, run as a user runs it", async () => {
    const { stdout, stderr } = await promisify(execFile)(process.execPath, ["examples/hello/train.ts"], {
      cwd: root,
      env: { ...process.env, TROUPE_CACHE: cache },
    });
    const losses = [...stdout.matchAll(/^step \d+: loss (\d\.\d{3})$/gm)].map(([, loss]) => Number(loss));
    expect(stderr).toBe("");
    expect(losses).toHaveLength(60);
    // A byte tells 5.5 nats to a model that knows nothing.
    expect(losses[0]).toBeGreaterThan(5);
    // The mean of ten: one sentence of the README moves the last batch's loss by 0.1.
    expect(losses.slice(-10).reduce((sum, loss) => sum + loss, 0) / 10).toBeLessThan(3.5);
  });

  it.each(["examples/hello/train.ts", "examples/hello/job.ts"])("is what the README shows: %s", (path) => {
    expect(read("README.md")).toContain(`\`\`\`ts\n${read(path)}\`\`\``);
  });
});
