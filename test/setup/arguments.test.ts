import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
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
        /^\[arguments\] expected options that there are, got unknown option '--nonsense'/,
      );
      expect(stderr).toContain("usage: npm run ");
    },
  );

  it("refuses a pair of switches or a part of chaos that there is not", () => {
    expect(run("test/matrix/run.ts", "nonsense")).toMatchObject({ status: 2 });
    expect(run("test/chaos/run.ts", "nonsense")).toMatchObject({ status: 2 });
  });

  it("takes no word that it does not know, each that npm runs and each benchmark", () => {
    const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
      scripts: Readonly<Record<string, string>>;
    };
    const named = Object.values(scripts).flatMap(
      (line) => line.match(/\b(scripts|test)\/\S+\.(mjs|ts)/g) ?? [],
    );
    const benches = readdirSync(join(root, "bench")).filter((file) => file.endsWith(".ts"));
    const helpers = ["bench/median.ts", "bench/progress.ts"];
    // Who hands all of them on leaves that to whom it starts; npm itself starts the last two.
    const handing = ["launch.mjs", "bench.mjs", "test-cuda-on-host.mjs", "test-debian-libtorch.mjs"];
    const byNpm = ["package/prepack.mjs", "package/postpack.mjs"];
    const others = new Set([...helpers, ...[...handing, ...byNpm].map((file) => `scripts/${file}`)]);
    const all = [...named, ...benches.map((file) => `bench/${file}`)].filter((file) => !others.has(file));
    expect(all.length).toBeGreaterThan(30);
    const isStrict = (file: string) =>
      /\breadArguments\(|\bparseArgs\(|\bnew Command\(/.test(readFileSync(join(root, file), "utf8"));
    expect(all.filter((file) => !isStrict(file))).toEqual([]);
  });

  it("refuses what would be ignored: a device for tables of families", () => {
    expect(run("test/matrix/run.ts", "--families", "--device", "sim:0")).toMatchObject({
      status: 2,
      stdout: "",
    });
    expect(run("test/matrix/run.ts", "--families", "--memory")).toMatchObject({ status: 2, stdout: "" });
  });

  it("prints its usage when it is asked for it", () => {
    expect(run("test/chaos/run.ts", "--help")).toMatchObject({ status: 0, stderr: "" });
  });
});
