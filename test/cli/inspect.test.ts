import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import { Workspace } from "../fixtures/run-tiny.ts";

const file = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));

function inspect(...args: string[]): Promise<{ readonly out: string; readonly err: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [file("bin/troupe.mjs"), "inspect", ...args], (_error, out, err) => {
      resolve({ out, err });
    });
  });
}

describe("troupe inspect --graph", () => {
  const workspace = new Workspace();
  afterAll(() => workspace[Symbol.dispose]());

  it("prints the program of the blocks once, operator by operator", async () => {
    const settings = ["data", workspace.text, "cache", workspace.path("cache"), "layers", "2"];
    const set = Array.from({ length: 3 }, (_, index) => [
      "--set",
      `${settings[2 * index]}=${settings[2 * index + 1]}`,
    ]).flat();
    const { out } = await inspect("--graph", file("test/fixtures/jobs/tiny.ts"), ...set);
    expect(out.match(/^transformer\.h\.\d, forward: \d+ operators, of \d+ that are issued/gm)).toHaveLength(
      1,
    );
    expect(out).toMatch(
      /^ {2}%0: float32\[.*\] = troupe::layer_norm\(argument 0, parameter 0, parameter 1, /m,
    );
    expect(out).toMatch(/^ {2}.* = gradient of troupe::layer_norm\(\[%\d+\]\)$/m);
  });

  it("says how it is called", async () => {
    expect((await inspect("job.ts")).err).toBe(
      "troupe: [troupe] expected --graph, got nothing to show (troupe inspect --graph JOB)\n",
    );
  });
});
