// npm run walks: how many files of src a batch, a gradient, an option and an event pass, see docs/internals/tour.md.
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { readArguments } from "./arguments.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
/** Where a stack is cut, inner frames kept: what makes the steps and what runs in them is on every stack further out. */
const outermost = ["actors/engine/rank/granted-step.ts", "actors/engine/conductor/step-report.ts"];
/** The option that is followed: the files that people write and that name it. */
const option = "overlapChunks";

/** A thing, and the files that it passes, in the order in which they were seen. */
export type Walks = ReadonlyMap<string, readonly string[]>;

/**
 * Takes the stacks of a run of two ranks and looks the option up.
 * @throws {Error} if the run fails or a place is not reached
 */
export function readWalks(): Walks {
  const probes = String(pathToFileURL(join(root, "scripts", "walks", "probes.mjs")));
  const run = join(root, "scripts", "walks", "run.ts");
  // As the modules are written: those that tests load joined have other stacks.
  const env = { ...process.env, JOINED_SOURCES: "" };
  const args = ["--import", probes, run];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8", env });
  if (status !== 0) throw new Error(`[walks] expected the run to end, got exit code ${status}: ${stderr}`);
  const stacks = stdout
    .split("\n")
    .filter((line) => line.startsWith('{"what"'))
    .map((line) => JSON.parse(line) as { readonly what: string; readonly files: readonly string[] });
  const walks = ["batch", "gradient", "event"].map((what): [string, string[]] => {
    const files = stacks.filter((stack) => stack.what === what).flatMap((stack) => withinStep(stack.files));
    return [what, [...new Set(files)]];
  });
  return new Map([...walks, ["option", filesThatName(option)]]);
}

/** Without the actor kernel, and without what is further out than the step. */
function withinStep(files: readonly string[]): readonly string[] {
  const end = files.findLastIndex((file) => outermost.includes(file));
  return files.slice(0, end < 0 ? undefined : end + 1).filter((file) => !file.startsWith("runtime/"));
}

function filesThatName(name: string): string[] {
  const source = join(root, "src");
  const files = readdirSync(source, { recursive: true, encoding: "utf8" });
  return files.filter(
    (file) =>
      file.endsWith(".ts") &&
      !file.includes(".generated.") &&
      new RegExp(`\\b${name}\\b`).test(readFileSync(join(source, file), "utf8")),
  );
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  readArguments(
    "usage: npm run walks\n\nLists the files that a batch, a gradient, an option and an event pass",
    {},
  );
  for (const [what, files] of readWalks()) console.log(`${what}: ${files.length}\n  ${files.join("\n  ")}`);
}
