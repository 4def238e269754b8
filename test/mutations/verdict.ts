import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Catcher, titlePattern } from "./mutation.ts";

/** The titles of a catcher's tests that have failed and passed. */
export interface Verdict {
  readonly failed: ReadonlySet<string>;
  readonly passed: ReadonlySet<string>;
  /** How long the longest of them took. */
  readonly longestMs: number;
}

/** How a catcher's tests are run. */
export interface VerdictOptions {
  /** Added to this process's own. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Time limit of a test; default: the suite's own. */
  readonly limitMs?: number;
}

/**
 * Runs a catcher's tests in a tree. A file that cannot even be loaded fails all of them.
 * @param tree - its folder
 */
export async function verdictOf(
  tree: string,
  { file, titles }: Catcher,
  { environment = {}, limitMs }: VerdictOptions = {},
): Promise<Verdict> {
  const report = join(tree, "mutate.json");
  const pattern = titles.map((title) => titlePattern(title).source).join("|");
  const vitest = join(tree, "node_modules/vitest/vitest.mjs");
  const args = ["run", runnerOf(file), "-t", pattern, "--reporter=json", `--outputFile=${report}`];
  if (limitMs !== undefined) args.push(`--testTimeout=${limitMs}`);
  const env = { ...process.env, ...environment };
  await ended(spawn(process.execPath, [vitest, ...args], { cwd: tree, stdio: "ignore", env }));
  const { testResults } = JSON.parse(readFileSync(report, "utf8")) as {
    testResults: {
      status: string;
      assertionResults: { title: string; fullName: string; status: string; duration?: number | null }[];
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
  const longestMs = Math.max(0, ...results.map(({ duration }) => duration ?? 0));
  return { failed, passed, longestMs };
}

function ended(child: ReturnType<typeof spawn>): Promise<void> {
  return new Promise((resolve, reject) => child.on("exit", () => resolve()).on("error", reject));
}

/** Titles may stand in a file that several runners share. */
function runnerOf(file: string): string {
  return file.endsWith(".test.ts") ? file : "test/collectives/local.test.ts";
}
