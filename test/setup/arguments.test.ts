import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));

function run(script: string, ...args: readonly string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, ...args], {
    cwd: root,
    encoding: "utf8",
  });
  return { status, stdout, stderr };
}

describe("a script", () => {
  it.each(["test/matrix/run.ts", "test/chaos/run.ts", "scripts/clean.mjs"])(
    "refuses an option that it does not have, and says which there are: %s",
    (script) => {
      const { status, stdout, stderr } = run(script, "--nonsense");
      expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
      expect(stderr).toMatch(
        /^\[arguments\] expected options that there are: got unknown option '--nonsense'/,
      );
      expect(stderr).toContain("usage: npm run ");
    },
  );

  it("refuses a pair of switches or a part of chaos that there is not", () => {
    expect(run("test/matrix/run.ts", "nonsense")).toMatchObject({ status: 2 });
    expect(run("test/chaos/run.ts", "nonsense")).toMatchObject({ status: 2 });
  });

  it("prints its usage when it is asked for it", () => {
    expect(run("test/chaos/run.ts", "--help")).toMatchObject({ status: 0, stderr: "" });
  });
});
