// npm run matrix:compare -- TREE [SWITCH]: trains every pair of switches that TREE (another checkout, set up) knows, in both
// trees at once, and tells every loss that differs in a bit. For refactorings: what computes the same must give the same.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { readArguments, refuse } from "../../scripts/arguments.mjs";
import { makeOwnedFolder, removeOwnedFolder } from "../../src/runtime/hosting/owned-folder.ts";
import { joinInto } from "../joined/run-joined.ts";
import { pairs, type Switch, switches } from "./switches.ts";

/** A tree's answer to the names of a combination: what it had not trained before. */
interface Trained {
  readonly failure?: string;
  /** Losses by the run's settings. */
  readonly runs: Readonly<Record<string, readonly number[]>>;
}

/** A checkout whose runs are made by a process of its own, of its modules joined: more than half of a run's time is their start. */
class Tree {
  readonly #trainer: ChildProcess;
  readonly #answers: AsyncIterator<string>;

  /**
   * @param work - for temporary files: of both trees the same, since a run's settings name it
   * @param name - of a folder in it
   */
  constructor(folder: string, work: string, name: string) {
    const script = fileURLToPath(new URL("./losses.ts", import.meta.url));
    this.#trainer = spawn(process.execPath, [script, folder], {
      cwd: folder,
      stdio: ["pipe", "pipe", "inherit"],
      env: {
        ...process.env,
        ...joinInto(join(work, name), join(folder, "src/")),
        NODE_COMPILE_CACHE: join(work, "node-compile-cache"),
        TMPDIR: work,
        // The other tree wants the cores that idle threads would spin on.
        OMP_WAIT_POLICY: "passive",
      },
    });
    this.#answers = createInterface({ input: this.#trainer.stdout as NodeJS.ReadableStream })[
      Symbol.asyncIterator
    ]();
  }

  /** The switches that it knows. */
  async switches(): Promise<readonly Pick<Switch, "name">[]> {
    return (await this.#answer()) as Pick<Switch, "name">[];
  }

  async train(names: readonly string[]): Promise<Trained> {
    this.#trainer.stdin?.write(`${JSON.stringify(names)}\n`);
    return (await this.#answer()) as Trained;
  }

  async close(): Promise<void> {
    this.#trainer.stdin?.end();
    if (this.#trainer.exitCode === null) await once(this.#trainer, "exit");
  }

  async #answer(): Promise<unknown> {
    const { value, done } = await this.#answers.next();
    if (done) throw new Error("[compare] expected an answer of the tree's trainer, got its end (see above)");
    return JSON.parse(value);
  }
}

const names = switches.map(({ name }) => name);
const usage = `
usage: npm run matrix:compare -- TREE [SWITCH]

Trains every pair of switches that TREE, another checkout that is set up, knows, in both trees, or those pairs that SWITCH is
one of: ${names.join(", ")}`;
const { positionals } = readArguments(usage, {}, 2);
const [folder, only] = positionals;
if (folder === undefined) refuse(usage, "another checkout", "nothing");
if (only !== undefined && !names.includes(only)) refuse(usage, "a switch", only);

const work = makeOwnedFolder(tmpdir(), "troupe-compare-");
process.on("exit", () => removeOwnedFolder(work));
const here = new Tree(fileURLToPath(new URL("../..", import.meta.url)), work, "here");
const there = new Tree(resolve(folder), work, "there");
const known = new Set((await there.switches()).map(({ name }) => name));
const shared = ((await here.switches()) as readonly Switch[]).filter(({ name }) => known.has(name));
const combinations = [...shared.map((each) => [each]), ...pairs(shared)].filter(
  (on) => only === undefined || on.some(({ name }) => name === only),
);

/** Runs that one tree has made and the other not yet. */
const waiting = new Map<string, readonly number[]>();
let numEqual = 0;
let numOther = 0;
let numFailed = 0;
await Promise.all([here, there].map(trainAll));
await Promise.all([here.close(), there.close()]);
say(
  `${combinations.length} combinations: of ${numEqual + numOther + waiting.size} runs ${numEqual} have the same losses to the last digit in both trees, ` +
    `${numOther} have others, ${waiting.size} were made in one tree only; ${numFailed} failed`,
);
process.exitCode = numEqual > 0 && numOther + waiting.size + numFailed === 0 ? 0 : 1;

/** As fast as the tree can, whatever the other has come to. */
async function trainAll(tree: Tree): Promise<void> {
  for (const [index, on] of combinations.entries()) {
    const names = on.map(({ name }) => name);
    const place = `${index + 1}/${combinations.length}`.padStart(8);
    const { failure, runs } = await tree.train(names);
    if (failure !== undefined) say(`${place}  ${names.join(" + ")}  FAILED in ${nameOf(tree)}: ${failure}`);
    if (failure !== undefined) numFailed += 1;
    for (const [run, losses] of Object.entries(runs)) compare(place, run, losses);
    if (tree === here) say(`${place}  ${names.join(" + ")}  ${numEqual} runs equal so far`);
  }
}

function compare(place: string, run: string, losses: readonly number[]): void {
  const others = waiting.get(run);
  if (others === undefined) return void waiting.set(run, losses);
  waiting.delete(run);
  if (losses.length === others.length && losses.every((loss, step) => loss === others[step])) numEqual += 1;
  else {
    numOther += 1;
    say(`${place}  OTHER BITS ${run}\n  ${losses.join(" ")}\n  ${others.join(" ")}`);
  }
}

function nameOf(tree: Tree): string {
  return tree === here ? "this tree" : "the other tree";
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
