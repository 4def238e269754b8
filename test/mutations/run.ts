// npm run mutate [-- WORD] [--again]: makes each small mistake of test/mutations/list.ts in a copy of the tree and shows
// that the tests named beside it fail, which pass without it.
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { readArguments, refuse } from "../../scripts/arguments.mjs";
import { mutations } from "./list.ts";
import { buildAddon } from "./mutated-addon.ts";
import { type Catcher, mutate, titlePattern } from "./mutation.ts";
import { ScratchTree } from "./scratch-tree.ts";

const usage = `
usage: npm run mutate [-- WORD] [-- --again]

Makes each mutation, or those that have WORD in their name or file, in a copy of the tree: the tests that must catch it fail.
What was shown before, for the same texts of product and test, is not shown again unless --again is given.`;
const { values, positionals } = readArguments(usage, { again: { type: "boolean", default: false } }, 1);
const [word = ""] = positionals;
const chosen = mutations.filter(({ name, file }) => name.includes(word) || file.includes(word));
if (chosen.length === 0) refuse(usage, "a word of a mutation's name or file", word);

/** What was shown, so that a run that was ended goes on where it was. */
const shownPath = fileURLToPath(new URL("../../build/mutations.json", import.meta.url));
const shown = new Set<string>(
  existsSync(shownPath) && !values.again ? (JSON.parse(readFileSync(shownPath, "utf8")) as string[]) : [],
);

using tree = new ScratchTree();
// All of them are made before the first test runs: one that no longer fits is said at once.
const mutants = chosen.map((mutation) => ({ mutation, text: mutate(tree.read(mutation.file), mutation) }));
const sound = new Map<string, Promise<Verdict>>();
let numMissed = 0;
for (const [index, { mutation, text }] of mutants.entries()) {
  const missed: string[] = [];
  for (const catcher of mutation.caughtBy) {
    const key = keyOf(catcher, text);
    if (shown.has(key)) continue;
    const withoutMistake = keyOf(catcher, tree.read(mutation.file));
    if (!shown.has(withoutMistake)) {
      const { failed, passed } = await soundly(catcher.file);
      const wrong = catcher.titles.filter((title) => failed.has(title) || !passed.has(title));
      if (wrong.length > 0) missed.push(`${wrong.join(", ")}: does not pass without it`);
      else keep(withoutMistake);
    }
    tree.write(mutation.file, text);
    const isNative = mutation.file.startsWith("native/");
    const { failed } = await test(catcher, isNative ? { TROUPE_ADDON: buildAddon(tree.path) } : {});
    tree.write(mutation.file, tree.read(mutation.file));
    const silent = catcher.titles.filter((title) => !failed.has(title));
    if (silent.length > 0) missed.push(`${catcher.file}: ${silent.join(", ")}: passes with it`);
    else keep(key);
  }
  if (missed.length > 0) numMissed += 1;
  const place = `${index + 1}/${mutants.length}`.padStart(8);
  process.stdout.write(
    `${place}  ${missed.length === 0 ? "caught" : "MISSED"}  ${mutation.file}: ${mutation.name}\n`,
  );
  for (const line of missed) process.stdout.write(`${" ".repeat(18)}${line}\n`);
}
process.stdout.write(`${mutants.length - numMissed} of ${mutants.length} mutations are caught\n`);
process.exitCode = numMissed === 0 ? 0 : 1;

/** The titles of a catcher's tests that have failed and passed. */
interface Verdict {
  readonly failed: ReadonlySet<string>;
  readonly passed: ReadonlySet<string>;
}

/** What a file's tests come to without a mistake: in one run all those that catch one of the chosen mutations. */
function soundly(file: string): Promise<Verdict> {
  const known = sound.get(file);
  if (known !== undefined) return known;
  const catchers = chosen.flatMap(({ caughtBy }) => caughtBy).filter((catcher) => catcher.file === file);
  const verdict = test({ file, titles: [...new Set(catchers.flatMap(({ titles }) => titles))] });
  sound.set(file, verdict);
  return verdict;
}

/** Runs a catcher's tests in the copy. A file that cannot even be loaded fails all of them. */
async function test(
  { file, titles }: Catcher,
  environment: Readonly<Record<string, string>> = {},
): Promise<Verdict> {
  const report = join(tree.path, "mutate.json");
  const pattern = titles.map((title) => titlePattern(title).source).join("|");
  const vitest = join(tree.path, "node_modules/vitest/vitest.mjs");
  const args = ["run", runnerOf(file), "-t", pattern, "--reporter=json", `--outputFile=${report}`];
  const env = { ...process.env, ...environment };
  await ended(spawn(process.execPath, [vitest, ...args], { cwd: tree.path, stdio: "ignore", env }));
  const { testResults } = JSON.parse(readFileSync(report, "utf8")) as {
    testResults: {
      status: string;
      assertionResults: { title: string; fullName: string; status: string }[];
    }[];
  };
  const results = testResults.flatMap(({ assertionResults }) => assertionResults);
  const ofStatus = (wanted: (status: string) => boolean) =>
    new Set(
      titles.filter((title) =>
        results.some((each) => titlePattern(title).test(each.fullName) && wanted(each.status)),
      ),
    );
  const isBroken = results.length === 0 || testResults.some(({ status }) => status === "failed");
  const passed = ofStatus((status) => status === "passed");
  // A hook that fails before the tests leaves them without a word.
  const failed = isBroken
    ? new Set([...ofStatus((status) => status === "failed"), ...titles.filter((title) => !passed.has(title))])
    : ofStatus((status) => status === "failed");
  return { failed, passed };
}

function ended(child: ReturnType<typeof spawn>): Promise<void> {
  return new Promise((resolve, reject) => child.on("exit", () => resolve()).on("error", reject));
}

/** Titles may stand in a file that several runners share. */
function runnerOf(file: string): string {
  return file.endsWith(".test.ts") ? file : "test/collectives/local.test.ts";
}

function keyOf(catcher: Catcher, text: string): string {
  const parts = [JSON.stringify(catcher), tree.read(catcher.file), text];
  return createHash("sha256").update(parts.join("\0")).digest("hex");
}

function keep(key: string): void {
  shown.add(key);
  mkdirSync(dirname(shownPath), { recursive: true });
  writeFileSync(shownPath, JSON.stringify([...shown]));
}
