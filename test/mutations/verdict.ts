import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Catcher, titlePattern } from "./mutation.ts";

/** The titles of a catcher's tests that have failed and passed. */
export interface Verdict {
  readonly failed: ReadonlySet<string>;
  readonly passed: ReadonlySet<string>;
}

/**
 * Runs a catcher's tests in a tree. A file that cannot even be loaded fails all of them.
 * @param tree - its folder
 * @param environment - added to this process's own
 */
export async function verdictOf(
  tree: string,
  { file, titles }: Catcher,
  environment: Readonly<Record<string, string>> = {},
): Promise<Verdict> {
  const report = join(tree, "mutate.json");
  const pattern = titles.map((title) => titlePattern(title).source).join("|");
  const vitest = join(tree, "node_modules/vitest/vitest.mjs");
  const args = ["run", runnerOf(file), "-t", pattern, "--reporter=json", `--outputFile=${report}`];
  const env = { ...process.env, ...environment };
  await ended(spawn(process.execPath, [vitest, ...args], { cwd: tree, stdio: "ignore", env }));
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
