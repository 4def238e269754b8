// Run by compare.ts, once for each tree: trains the combinations that it receives, and answers with the losses of every run.
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import type { Outcome, Workspace } from "../fixtures/run-tiny.ts";
import type { Matrix } from "./matrix.ts";
import type { Switch } from "./switches.ts";

/** The modules of a tree that compare.ts uses; it may be an older tree. */
interface Tree {
  readonly Workspace: typeof Workspace;
  readonly Matrix: typeof Matrix;
  readonly switches: readonly Switch[];
}

const [tree = "."] = process.argv.slice(2);
const { Workspace: TreeWorkspace, Matrix: TreeMatrix, switches } = await importTree(tree);
using workspace = new TreeWorkspace();
const matrix = new TreeMatrix(workspace);
const printed = new Set<string>();

answer(switches);
for await (const line of createInterface({ input: process.stdin })) {
  const names = JSON.parse(line) as string[];
  const outcome = await matrix.try(switches.filter(({ name }) => names.includes(name)));
  const runs: Record<string, readonly number[]> = {};
  for (const [key, run] of workspace.runs) {
    if (printed.has(key)) continue;
    printed.add(key);
    const made: Outcome | readonly number[] = await run.catch(() => []);
    // Older trees keep the losses alone.
    runs[nameOf(key)] = "losses" in made ? made.losses : made;
  }
  answer({ failure: outcome.failure, runs });
}

/** A run's settings, without the paths of this tree. */
function nameOf(key: string): string {
  const [options, config] = JSON.parse(key) as [object, object];
  return JSON.stringify([options, config]);
}

/** JSON.stringify writes the shortest text that reads back as the same double: equal texts are equal bits. */
function answer(message: unknown): void {
  process.stdout.write(`${JSON.stringify(message)}\n`);
}

async function importTree(folder: string): Promise<Tree> {
  const load = (file: string) => import(new URL(file, pathToFileURL(`${folder}/`)).href);
  const parts = await Promise.all(
    ["test/fixtures/run-tiny.ts", "test/matrix/matrix.ts", "test/matrix/switches.ts"].map(load),
  );
  return Object.assign({}, ...parts) as Tree;
}
