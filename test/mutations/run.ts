// npm run mutate [-- WORD] [--again] [--jobs N]: makes each small mistake of test/mutations/list.ts in a copy of the tree and
// shows that the tests named beside it fail, which pass without it.
import { createHash } from "node:crypto";
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { readArguments, refuse } from "../../scripts/arguments.mjs";
import { mutations } from "./list.ts";
import { buildAddon } from "./mutated-addon.ts";
import { type Catcher, type Mutation, mutate } from "./mutation.ts";
import { ScratchTree } from "./scratch-tree.ts";
import { Shown } from "./shown.ts";
import { type Verdict, verdictOf } from "./verdict.ts";

const usage = `
usage: npm run mutate [-- WORD] [-- --again] [-- --jobs N]

Makes each mutation, or those that have WORD in their name or file, in a copy of the tree: the tests that must catch it fail.
What was shown before, for the same texts of product and test, is not shown again unless --again is given: a run that was
ended goes on where it was.
  --jobs N   that many at once, each in a copy of its own (as many as there are cores, at most 4)`;
const { values, positionals } = readArguments(
  usage,
  { again: { type: "boolean", default: false }, jobs: { type: "string" } },
  1,
);
const [word = ""] = positionals;
const chosen = mutations.filter(({ name, file }) => name.includes(word) || file.includes(word));
if (chosen.length === 0) refuse(usage, "a word of a mutation's name or file", word);
const numJobs = values.jobs === undefined ? Math.min(4, availableParallelism()) : Number(values.jobs);
if (!Number.isInteger(numJobs) || numJobs < 1)
  refuse(usage, "a whole number of jobs from 1 on", `${values.jobs}`);

const LEAST_LIMIT_MS = 60_000;
const MOST_TIMES_SLOWER = 20;

/** A mutation and its file's text with the mistake. */
interface Mutant {
  readonly mutation: Mutation;
  readonly text: string;
}

const shown = new Shown(fileURLToPath(new URL("../../build/mutations.json", import.meta.url)), values.again);
const sound = new Map<string, Promise<Verdict>>();
using trees = new DisposableStack();
const copies = Array.from({ length: Math.min(numJobs, chosen.length) }, () => trees.use(new ScratchTree()));
const [original] = copies as [ScratchTree];
// All of them are made before the first test runs: one that no longer fits is said at once.
const mutants = chosen.map((mutation) => ({
  mutation,
  text: mutate(original.read(mutation.file), mutation),
}));
const compiled = mutants.filter(({ mutation }) => isNative(mutation));
const interpreted = mutants.filter(({ mutation }) => !isNative(mutation));
let numJudged = 0;
let numMissed = 0;
// One copy compiles, and begins with that: each would compile all of native/ first.
await Promise.all(
  copies.map((tree, index) => judgeAll(tree, index === 0 ? [compiled, interpreted] : [interpreted])),
);
process.stdout.write(`${mutants.length - numMissed} of ${mutants.length} mutations are caught\n`);
process.exitCode = numMissed === 0 ? 0 : 1;

/** Takes mutants from the queues, one after the other, until they are empty. */
async function judgeAll(tree: ScratchTree, queues: readonly Mutant[][]): Promise<void> {
  for (const queue of queues) {
    for (let mutant = queue.shift(); mutant !== undefined; mutant = queue.shift()) {
      const begin = performance.now();
      report(mutant.mutation, await missesOf(tree, mutant), (performance.now() - begin) / 1000);
    }
  }
}

/** @returns a line for each catcher that does not notice the mistake */
async function missesOf(tree: ScratchTree, { mutation, text }: Mutant): Promise<string[]> {
  const missed: string[] = [];
  for (const catcher of mutation.caughtBy) {
    const key = keyOf(catcher, text);
    if (shown.has(key)) continue;
    const withoutMistake = keyOf(catcher, tree.read(mutation.file));
    if (!shown.has(withoutMistake)) {
      const { failed, passed, longestMs } = await soundly(tree, catcher.file);
      const wrong = catcher.titles.filter((title) => failed.has(title) || !passed.has(title));
      if (wrong.length > 0) {
        missed.push(`${catcher.file}: ${wrong.join(", ")}: does not pass without it`);
        continue;
      }
      shown.add(withoutMistake, longestMs);
    }
    tree.write(mutation.file, text);
    const environment = isNative(mutation) ? { TROUPE_ADDON: await buildAddon(tree.path) } : {};
    const { failed, longestMs } = await verdictOf(tree.path, catcher, {
      environment,
      limitMs: limitFor(shown.longestMs(withoutMistake) ?? 0),
    });
    tree.write(mutation.file, tree.read(mutation.file));
    const silent = catcher.titles.filter((title) => !failed.has(title));
    if (silent.length > 0) missed.push(`${catcher.file}: ${silent.join(", ")}: passes with it`);
    else shown.add(key, longestMs);
  }
  return missed;
}

function report({ file, name }: Mutation, missed: readonly string[], seconds: number): void {
  numJudged += 1;
  if (missed.length > 0) numMissed += 1;
  const place = `${numJudged}/${mutants.length}`.padStart(8);
  const outcome = missed.length === 0 ? "caught" : "MISSED";
  process.stdout.write(`${place}  ${outcome}  ${seconds.toFixed(0).padStart(4)} s  ${file}: ${name}\n`);
  for (const line of missed) process.stdout.write(`${" ".repeat(26)}${line}\n`);
}

/** The verdict of a file's tests without a mistake: one run of all tests that catch one of the chosen mutations. */
function soundly(tree: ScratchTree, file: string): Promise<Verdict> {
  const known = sound.get(file);
  if (known !== undefined) return known;
  const catchers = chosen.flatMap(({ caughtBy }) => caughtBy).filter((catcher) => catcher.file === file);
  const titles = [...new Set(catchers.flatMap((catcher) => catcher.titles))];
  const verdict = verdictOf(tree.path, { file, titles });
  sound.set(file, verdict);
  return verdict;
}

/** The time limit of a mutated test: a hang by a mistake ends sooner than a slow test on a busy machine. */
function limitFor(soundMs: number): number {
  return Math.ceil(Math.max(LEAST_LIMIT_MS, MOST_TIMES_SLOWER * soundMs));
}

function isNative({ file }: Mutation): boolean {
  return file.startsWith("native/");
}

function keyOf(catcher: Catcher, text: string): string {
  const parts = [JSON.stringify(catcher), original.read(catcher.file), text];
  return createHash("sha256").update(parts.join("\0")).digest("hex");
}
