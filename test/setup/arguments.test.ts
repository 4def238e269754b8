import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** Benchmarks that are called by name, and the one that is called by another. */
const benchmarks = [
  ...readdirSync(join(root, "bench"))
    .filter((file) => file.endsWith(".ts"))
    .map((file) => `bench/${file}`),
  "bench/gpu/train.ts",
];

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
    // A program that hands all of them on leaves that to the one it starts; npm itself starts the last.
    const handing = ["launch.mjs", "bench.mjs", "test-cuda-on-host.mjs", "test-debian-libtorch.mjs"];
    const others = new Set([...handing, "package/prepack.mjs"].map((file) => `scripts/${file}`));
    const all = [...named, ...benchmarks].filter((file) => !others.has(file));
    expect(all.length).toBeGreaterThan(30);
    const isStrict = (file: string) =>
      /\breadArguments\(|\bnew Command\(/.test(readFileSync(join(root, file), "utf8"));
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

  it("refuses a number that is none, and no steps at all", () => {
    expect(run("test/chaos/run.ts", "--minutes", "soon")).toMatchObject({
      status: 2,
      stderr: expect.stringMatching(/^\[arguments\] expected --minutes to be a number, got "soon"\n/),
    });
    for (const steps of ["0", "1.5", "many"])
      expect(run("bench/gpt.ts", "--steps", steps)).toMatchObject({
        status: 2,
        stderr: expect.stringContaining(
          `[arguments] expected --steps to be a whole number from 1 on, got "${steps}"\n`,
        ),
      });
  });
});

describe("a benchmark", () => {
  const named = benchmarks.map((file) => file.slice("bench/".length, -".ts".length));

  it("is listed with its purpose where there is none of a name", () => {
    const { status, stderr } = run("scripts/bench.mjs", "nonsense");
    expect(status).toBe(1);
    const listed = [...stderr.matchAll(/^ {2}([\w-]+) +[A-Z].{10,}$/gm)].map(([, name]) => name);
    expect(listed).toEqual(named.filter((name) => !name.includes("/")));
  });

  it.each(named)("says how it is called, and refuses an option that it does not have: %s", (name) => {
    const script = `bench/${name}.ts`;
    const asked = run(script, "--help");
    expect(asked).toMatchObject({ status: 0, stderr: "" });
    expect(asked.stdout).toMatch(/^usage: (npm run bench -- |node bench\/)/);
    expect(asked.stdout).toContain(name);
    const refused = run(script, "--nonsense");
    expect(refused).toMatchObject({ status: 2, stdout: "" });
    expect(refused.stderr).toMatch(
      /^\[arguments\] expected options that there are, got unknown option '--nonsense'\n\nusage: /,
    );
  });
});
