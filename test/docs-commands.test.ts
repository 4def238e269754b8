import { execFile } from "node:child_process";
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import * as models from "../src/entries/models.ts";
import * as rapidformer from "../src/entries/rapidformer.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "troupe-test-"));
/** The reader's own file of options. */
const options = join(folder, "run.toml");
writeFileSync(options, "ranks = 2\n");
const pages = globSync(["*.md", "docs/**/*.md", "examples/*/README.md"], { cwd: root })
  .filter((page) => page !== "CHANGELOG.md" && page !== "docs/internals/decisions/index.md")
  .sort();

interface Block {
  readonly page: string;
  readonly language: string;
  readonly lines: readonly string[];
}

/** The code of a page, between its fences; a line that ends with a backslash goes on. */
function blocksOf(page: string): Block[] {
  const blocks: Block[] = [];
  let open: { language: string; lines: string[] } | undefined;
  for (const line of readFileSync(join(root, page), "utf8").replaceAll("\\\n", " ").split("\n")) {
    const fence = /^```(\w*)/.exec(line.trim());
    if (fence === null) open?.lines.push(line);
    else if (open === undefined) open = { language: fence[1] ?? "", lines: [] };
    else {
      blocks.push({ page, ...open });
      open = undefined;
    }
  }
  return blocks;
}

const blocks = pages.flatMap(blocksOf);

/** Every command of the product in the pages' shell code, without its comment. */
const commands = blocks
  .filter(({ language }) => ["sh", "bash", ""].includes(language))
  .flatMap(({ page, lines }) => lines.map((line) => ({ page, line: line.replace(/\s+#.*$/, "").trim() })))
  .filter(({ line }) => /(^|\s)(npx )?(troupe|rapidformer) [a-z-]/.test(line) || /^npm start\b/.test(line))
  .filter(({ line }) => !/^troupe: /.test(line));

/**
 * How a command is tried. "settings": through the reading of options, planning and the job, by `--print-config`. "job": its data is
 * a user's; its options as "settings" are with the small GPT, its settings those that the job declares. "run": as it stands.
 * "elsewhere": another test runs it. "reads": it wants what a run has written; its options are known to the command's help.
 */
type Class = "settings" | "job" | "run" | "elsewhere" | "reads";

const classes: readonly (readonly [pattern: RegExp, class_: Class])[] = [
  [/troupe plan .*--simulate --(tp|zero) /, "elsewhere"], // test/cli/scale-page.test.ts
  [/troupe finetune /, "elsewhere"], // test/cli/model-folders.test.ts
  [/troupe rapidformer run\.sh/, "elsewhere"], // test/cli/rapidformer-runs.test.ts
  [/troupe run .*--resume /, "reads"],
  [/troupe (plan|inspect) /, "run"],
  [/troupe doctor/, "reads"],
  [/troupe (generate|chat|dashboard|preprocess|checkpoint|export|serve) /, "reads"],
  [/examples\/(mrpc|digits|emoji|lemmas|lora|own|speech)\/job\.ts/, "job"],
  [/troupe run /, "settings"],
  [/^npm start\b/, "settings"],
];

const classOf = (line: string) => classes.find(([pattern]) => pattern.test(line))?.[1];

/** The words behind `troupe`, with the example in the place of a user's job; those of a launcher before it are left out. */
function wordsOf(line: string): string[] {
  const start = ["run", "examples/gpt/job.ts", "--ranks", "2", "--zero", "3"];
  const text = line.startsWith("npm start")
    ? line.replace(/^npm start( --)?/, "")
    : line.replace(/^.*?\btroupe /, "");
  const words = [...text.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare ?? "");
  const own = words.map((word) => (word === "JOB" || word === "job.ts" ? "examples/gpt/job.ts" : word));
  return line.startsWith("npm start") ? [...start, ...own] : own;
}

function run(words: readonly string[]): Promise<{ code: number | null; out: string; err: string }> {
  return new Promise((resolve) => {
    const child = execFile(process.execPath, ["bin/troupe.mjs", ...words], { cwd: root }, (_, out, err) =>
      resolve({ code: child.exitCode, out, err }),
    );
  });
}

/** Without what a machine may lack, and with folders of this test's own. */
function tried(words: readonly string[]): string[] {
  const at = words.map((word, index) => {
    const flag = words[index - 1] ?? "";
    if (flag === "--device" && word.startsWith("cuda") && words[0] !== "plan") return "sim";
    if (flag === "--offload-dir") return folder;
    if (flag === "--config") return options;
    if (/^--(checkpoint|events|trace-file)$/.test(flag)) return join(folder, `${index}`);
    return flag === "--carrier" ? "auto" : word;
  });
  // A shell's variables, and data that only the reader has.
  return at.filter(
    (word, index) => !word.startsWith("$") && !(at[index - 1] === "--set" || word === "--set"),
  );
}

describe("the pages' commands", () => {
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it("are all of a known class", () => {
    expect(commands.filter(({ line }) => classOf(line) === undefined)).toEqual([]);
    expect(commands.length).toBeGreaterThan(40);
  });

  const unique = [...new Map(commands.map((each) => [each.line, each])).values()];
  const of = (...wanted: Class[]) =>
    unique.flatMap(({ page, line }) =>
      wanted.includes(classOf(line) as Class) ? [[page, line] as const] : [],
    );

  it.each(of("settings", "job"))("%s: %s, is read and planned", async (_, line) => {
    const [command = "", job = "", ...words] = wordsOf(line);
    const own = classOf(line) === "job" ? "examples/gpt/job.ts" : job;
    const { code, err } = await run([command, own, ...tried(words), "--print-config"]);
    expect({ code, err }).toEqual({ code: 0, err: expect.not.stringContaining("troupe: [") });
    const settings = words
      .filter((__, index) => words[index - 1] === "--set")
      .map((word) => word.split("=")[0]);
    if (settings.length === 0) return;
    const { default: module } = (await import(join(root, job))) as { default: { config: object } };
    expect(Object.keys(module.config)).toEqual(expect.arrayContaining(settings));
  });

  it.each(of("run"))("%s: %s, runs", async (_, line) => {
    const { code, out, err } = await run(tried(wordsOf(line)));
    expect({ code, err }).toMatchObject({ code: 0 });
    expect(out).not.toBe("");
  });

  it.each(of("reads"))("%s: %s, has options that are known", async (_, line) => {
    const words = wordsOf(line);
    const depth = words[0] === "checkpoint" ? 2 : 1;
    const { code, out } = await run([...words.slice(0, depth), "--help"]);
    expect(code).toBe(0);
    for (const word of words) if (word.startsWith("--")) expect(out).toContain(word);
  });
});

describe("the names that pages give", () => {
  it("are exported, or hooks of what is, where the examples say what a name of Rapidformer's is called", () => {
    const page = readFileSync(join(root, "examples/rapidformer/README.md"), "utf8");
    const table = page.slice(page.indexOf("| original, Python"));
    const cells = table
      .split("\n")
      .filter((line) => line.startsWith("| `"))
      .map((line) => line.split(" | ")[1] ?? "");
    const called = cells.flatMap((cell) =>
      [...cell.matchAll(/(?:`|extends |new )(\w+)(?=\(| |`)/g)].map(([, name = ""]) => name),
    );
    const known = new Set([
      ...Object.keys(models),
      ...Object.keys(rapidformer),
      ...[rapidformer.Finetuner, rapidformer.PreTrainer, rapidformer.RapidformerEngine].flatMap(
        ({ prototype }) => [prototype, Object.getPrototypeOf(prototype)].flatMap(Object.getOwnPropertyNames),
      ),
      "runComputeMetrics", // a hook that a template may leave out
    ]);
    const words = new Set([
      "class",
      "new",
      "engine",
      "finetuner",
      "this",
      "test",
      "dataIterator",
      "lossOf",
      "export",
    ]);
    expect(called.filter((name) => !known.has(name) && !words.has(name))).toEqual([]);
    expect(called).toContain("leftToRightRows");
  });
});
