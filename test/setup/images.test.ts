import { execFileSync } from "node:child_process";
import { cpSync, existsSync, globSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import { nodeFloor } from "../../scripts/setup/layout.mjs";
import { wheelOfThisMachine } from "../../scripts/setup/wheels.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const read = (path: string) => readFileSync(join(root, path), "utf8");
const known = new Set(["ARG", "CMD", "COPY", "ENV", "FROM", "RUN", "USER", "WORKDIR"]);

interface Instruction {
  readonly name: string;
  readonly text: string;
}

interface Stage {
  readonly base: string;
  readonly name: string | undefined;
  readonly instructions: readonly Instruction[];
}

/** The stages of a Dockerfile: its lines without comments, continued ones joined. */
function stagesOf(path: string): Stage[] {
  const lines = read(path)
    .replaceAll(/^#.*\n/gm, "")
    .replaceAll("\\\n", " ")
    .split("\n");
  const stages: { base: string; name: string | undefined; instructions: Instruction[] }[] = [];
  for (const line of lines.filter((each) => each.trim() !== "")) {
    const [, name = "", text = ""] = /^([A-Z]+) +(.*)$/.exec(line) ?? [];
    expect(known, line).toContain(name);
    if (name === "FROM") {
      const [, base = "", as] = /^(\S+)(?: AS (\w+))?$/.exec(text) ?? [];
      stages.push({ base, name: as, instructions: [] });
    } else stages.at(-1)?.instructions.push({ name, text });
  }
  return stages;
}

/** The last value that an instruction gives in a stage. */
const last = (stage: Stage | undefined, name: string) =>
  stage?.instructions.findLast((each) => each.name === name)?.text;

/** The paths that a stage copies, from the clone or from another stage. */
function copiesOf({ instructions }: Stage) {
  return instructions
    .filter(({ name }) => name === "COPY")
    .map(({ text }) => {
      const words = text.split(/ +/);
      const from = words.find((word) => word.startsWith("--from="))?.slice("--from=".length);
      return { from, sources: words.filter((word) => !word.startsWith("--")).slice(0, -1) };
    });
}

const images = globSync("docker/*.Dockerfile", { cwd: root }).toSorted();

describe.each(images)("%s", (path) => {
  const stages = stagesOf(path);
  const build = stages.find(({ name }) => name === "build");

  it("copies files of the clone that exist and are not ignored, and folders of stages before it", () => {
    const ignored = new Set(read(".dockerignore").trim().replaceAll("**/", "").split("\n"));
    for (const [index, stage] of stages.entries()) {
      const before = stages.slice(0, index).map(({ name }) => name);
      for (const { from, sources } of copiesOf(stage)) {
        if (from !== undefined) {
          expect(before).toContain(from);
          continue;
        }
        expect(sources.filter((each) => !existsSync(join(root, each)))).toEqual([]);
        expect(sources.filter((each) => each.split("/").some((part) => ignored.has(part)))).toEqual([]);
      }
    }
  });

  it("copies all that the set-up imports before it runs", () => {
    const folder = mkdtempSync(join(tmpdir(), "troupe-test-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const sources = build === undefined ? [] : copiesOf(build).filter(({ from }) => from === undefined);
    for (const source of sources.flatMap((each) => each.sources))
      cpSync(join(root, source), join(folder, source), { recursive: true });
    symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
    const { scripts } = JSON.parse(read("package.json"));
    const [, script = ""] = /^node (\S+)$/.exec(scripts["build:native"]) ?? [];
    expect(execFileSync(process.execPath, [script, "--help"], { cwd: folder, encoding: "utf8" })).toContain(
      "usage",
    );
  });

  it("ends with npm start, as a user who is not root, in that user's folder", () => {
    const final = stages.at(-1);
    const user = last(final, "USER") ?? "root";
    expect(user).not.toMatch(/^(root|0)\b/);
    expect(last(final, "WORKDIR")).toBe(`/home/${user}/troupe`);
    expect(final?.instructions.at(-1)).toEqual({ name: "CMD", text: '["npm", "start"]' });
    // The addon names libtorch by its path, and set-up refuses files of other users.
    expect(last(build, "USER")).toBe(user);
    expect(last(build, "WORKDIR")).toBe(last(final, "WORKDIR"));
  });

  it("has the versions of Node, torch and CUDA that package.json and set-up have", () => {
    const bases = stages.map(({ base }) => base).join("\n");
    const text = read(path);
    const majors = [...bases.matchAll(/^node:(\d+)/gm)].map(([, major]) => Number(major));
    expect(new Set(majors)).toEqual(new Set([nodeFloor]));
    expect(JSON.parse(read("package.json")).devDependencies.node).toMatch(new RegExp(`^\\^${nodeFloor}\\.`));
    const torch = [...text.matchAll(/torch==(\S+)/g)].map(([, version]) => version);
    expect(torch.filter((version) => version !== wheelOfThisMachine()?.version)).toEqual([]);
    // Where addons with CUDA look for its libraries: nvidia/cu13.
    const [, wanted] = /nvidia\/cu(\d+)\/lib/.exec(read("scripts/package/native-package.mjs")) ?? [];
    const cuda = [...text.matchAll(/nvidia\/cuda:(\d+)\.(\d+)|whl\/cu(\d\d)(\d)|nvidia\/cu(\d+)\//g)];
    expect(cuda.map((match) => match[1] ?? match[3] ?? match[5]).filter((each) => each !== wanted)).toEqual(
      [],
    );
    expect(torch.length > 0).toBe(cuda.length > 0);
    const minors = cuda.flatMap((match) => match[2] ?? match[4] ?? []);
    expect(new Set(minors).size).toBe(Math.min(minors.length, 1));
  });
});

describe("images", () => {
  it("leave out what git ignores, and git's own folder", () => {
    const lines = (path: string) => read(path).trim().split("\n");
    const everywhere = lines(".gitignore").map((line) => `**/${line.replace(/\/$/, "")}`);
    expect(lines(".dockerignore").toSorted()).toEqual([".git", ...everywhere].toSorted());
  });

  it("are those of the devcontainers, up to the stage that builds", () => {
    const containers = globSync(".devcontainer/**/devcontainer.json", { cwd: root });
    const used = containers.map((path) => {
      const { build, remoteUser } = JSON.parse(read(path));
      const at = (below: string) => relative(root, join(root, dirname(path), below));
      expect(at(build.context)).toBe("");
      const stage = stagesOf(at(build.dockerfile)).find(({ name }) => name === build.target);
      expect(stage && last(stage, "USER")).toBe(remoteUser);
      return at(build.dockerfile);
    });
    expect(used.toSorted()).toEqual(images);
  });
});
