import { spawnSync } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** Runs Node in a process of its own, which finds no addon. */
function runWithoutAddon(...args: readonly string[]) {
  const env = { ...process.env, TROUPE_ADDON: join(tmpdir(), "no-addon-here", "troupe.node") };
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: root, env, encoding: "utf8" });
  return { status, stdout, stderr };
}

describe("without libtorch", () => {
  it("imports troupe", () => {
    const script = `const troupe = await import("troupe"); console.log(typeof troupe.Runtime, typeof troupe.defineJob)`;
    const run = runWithoutAddon("--input-type=module", "-e", script);
    expect(run).toEqual({ status: 0, stdout: "function function\n", stderr: "" });
  });

  it("answers --help", () => {
    const run = runWithoutAddon("bin/troupe.mjs", "run", "--help");
    expect(run).toMatchObject({ status: 0, stdout: expect.stringContaining("--ranks"), stderr: "" });
  });

  it("tokenizes text", () => {
    const script = `const { tokenizerFromSpec } = await import("troupe/data"); console.log(tokenizerFromSpec({ kind: "byte" }).encode("ab").join())`;
    expect(runWithoutAddon("--input-type=module", "-e", script)).toMatchObject({
      status: 0,
      stdout: "97,98\n",
    });
  });

  it("names a job that does not exist", () => {
    const run = runWithoutAddon("bin/troupe.mjs", "run", "no-such-job.ts");
    expect(run.status).not.toBe(0);
    expect(run.stderr).toContain("no-such-job.ts");
  });

  it("says at the first tensor what is missing and what to do", () => {
    const script = `const { tensor } = await import("troupe");
      try { tensor([1]) } catch ({ code, message }) { console.log(code, message) }`;
    const { stdout } = runWithoutAddon("--input-type=module", "-e", script);
    expect(stdout).toMatch(/^NATIVE_UNAVAILABLE .*npx troupe doctor/);
  });
});
