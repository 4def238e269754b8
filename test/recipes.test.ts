import { execFile } from "node:child_process";
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));
const recipes = globSync("docs/extend/*.md", { cwd: root }).filter((page) => !page.endsWith("index.md"));

/** One change that a recipe makes: to which file, the comment that says where, and the code. */
interface Step {
  readonly path: string;
  readonly where: string;
  readonly code: string;
}

/** The changes of a recipe, in order: each block of code behind a comment belongs to the file of the heading above it. */
function stepsOf(page: string): Step[] {
  let path = "";
  const parts = /^### \d+\. `([^`]+)`|^<!-- (new|(?:before|instead of): .*?) -->\n\n```ts\n([\s\S]*?)```/gm;
  return [...readFileSync(join(root, page), "utf8").matchAll(parts)].flatMap(([, heading, where, code]) => {
    path = heading ?? path;
    return where === undefined || code === undefined ? [] : [{ path, where, code }];
  });
}

/** Makes one change in a copy of the tree; the line that it says must be there once. */
function follow(tree: string, { path, where, code }: Step): void {
  const file = join(tree, path);
  if (where === "new") {
    expect(existsSync(file), `${path} is new`).toBe(false);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, code);
    return;
  }
  const [how = "", line = ""] = where.split(/: (.*)/s);
  const lines = readFileSync(file, "utf8").split("\n");
  const found = lines.flatMap((text, index) => (text.trim().startsWith(line.trim()) ? [index] : []));
  expect(found, `${path} has one line "${line}"`).toHaveLength(1);
  lines.splice(found[0] as number, how === "before" ? 0 : 1, ...code.trimEnd().split("\n"));
  writeFileSync(file, lines.join("\n"));
}

describe("each recipe", () => {
  it.each(recipes)("names its files in order, and those that are not new exist: %s", (page) => {
    const text = readFileSync(join(root, page), "utf8");
    const added = new Set(stepsOf(page).flatMap(({ path, where }) => (where === "new" ? [path] : [])));
    const numbered = [...text.matchAll(/^(?:### )?\d+\. [^`\n]*`([^`]+)`/gm)].map(([, path = ""]) => path);
    const paths = numbered.filter((path) => /^(src|native|test|docs|scripts)\//.test(path));
    expect(paths.length).toBeGreaterThan(2);
    expect(paths.filter((path) => !added.has(path) && !existsSync(join(root, path)))).toEqual([]);
  });

  it("is there for an optimizer, a family, an operator, a sink, an option and a message", () => {
    const names = recipes.map((page) => page.replace(/^.*\/|\.md$/g, ""));
    expect(names.toSorted()).toEqual(["family", "message", "operator", "optimizer", "option", "sink"]);
  });
});

describe("what a recipe adds to a copy of the tree", () => {
  const folder = mkdtempSync(join(tmpdir(), "troupe-recipes-"));
  const tree = join(folder, "tree");
  // The copy is loaded as it is written.
  const { NODE_OPTIONS: _, JOINED_SOURCES: __, ...env } = process.env;
  const run = promisify(execFile);

  const node = (...args: string[]) =>
    run(process.execPath, args, { cwd: tree, env: { ...env, TROUPE_CACHE: join(folder, "cache") } });
  const types = () =>
    node("node_modules/typescript/bin/tsc", "-p", "recipe.json").then(
      () => "",
      ({ stdout }: { stdout: string }) => stdout,
    );

  beforeAll(() => {
    mkdirSync(tree);
    for (const name of ["src", "bin", "scripts", "examples", "test/fixtures/docs", "docs/reference"])
      cpSync(join(root, name), join(tree, name), {
        recursive: true,
        filter: (path) => !/site\/node_modules/.test(path),
      });
    for (const name of ["package.json", "tsconfig.json", "README.md"])
      cpSync(join(root, name), join(tree, name), { recursive: true });
    for (const name of ["node_modules", "build", ".libtorch"])
      symlinkSync(join(root, name), join(tree, name));
    const config = {
      extends: "./tsconfig.json",
      include: ["src", "test/actors"],
      exclude: ["src/job/dashboard/page"],
    };
    writeFileSync(join(tree, "recipe.json"), JSON.stringify(config));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it("a sink of a script's own is called with each event and closed", async () => {
    const { stdout } = await node("test/fixtures/docs/sink.ts");
    expect(stdout).toMatch(/^1 \d\.\d+\n2 \d\.\d+\n3 \d\.\d+\nno more steps\n$/);
  });

  it("an optimizer of a job's own trains on two ranks as on one", async () => {
    const job = [
      "bin/troupe.mjs",
      "run",
      "test/fixtures/docs/sign-descent.ts",
      "--checkpoint",
      "none",
      "--json",
    ];
    const [one, two] = await Promise.all(
      [
        ["--accumulation", "2"],
        ["--ranks", "2", "--zero", "3"],
      ].map(async (layout) => {
        const { stdout } = await node(...job, "--set", "steps=10", ...layout);
        const events = stdout
          .trim()
          .split("\n")
          .map((line) => JSON.parse(line) as { kind: string; lossNats: number });
        return events.filter(({ kind }) => kind === "step.finished").map(({ lossNats }) => lossNats);
      }),
    );
    expect(one).toHaveLength(10);
    expect(one?.at(-1)).toBeLessThan((one?.[0] as number) - 0.2);
    expect(two).toEqual(one);
  });

  it("a message that has no handler yet does not compile; with one it is answered; a sink has its flag", async () => {
    const [kind, ...rest] = stepsOf("docs/extend/message.md");
    follow(tree, kind as Step);
    expect(await types()).toMatch(/src\/actors\/feeder\.ts.*size/s);
    for (const step of [...rest, ...stepsOf("docs/extend/sink.md")]) follow(tree, step);
    await node("scripts/write-docs.ts");
    expect(await types()).toBe("");
    expect((await node("test/actors/ask-size.ts")).stdout).toMatch(/^train has [1-9]\d* samples\n$/);
    const tally = join(folder, "tally.json");
    await node(
      "bin/troupe.mjs",
      "run",
      "examples/hello/job.ts",
      "--steps",
      "3",
      "--checkpoint",
      "none",
      "--tally",
      tally,
    );
    expect(JSON.parse(readFileSync(tally, "utf8"))).toMatchObject({ "step.finished": 3, "run.finished": 1 });
  });
});
