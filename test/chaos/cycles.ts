import { type ChildProcess, fork } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { Runtime } from "../../src/entries/index.ts";
import type { Workspace } from "../fixtures/run-tiny.ts";
import type { Chance } from "./chance.ts";
import type { Placement } from "./faults.ts";
import { leftovers, type Place, type Possessions, possessions } from "./leftovers.ts";

const programFile = new URL("./program.ts", import.meta.url);
const struckJob = new URL("../fixtures/jobs/struck.ts", import.meta.url);
const placements: readonly Placement[] = ["thread", "process"];

/** How long what a dead program started may outlive it, in ms: a bound on the wait, reached only where something is left. */
const GRACE_MS = 10_000;

/** The leftovers, and the longest time that a process outlived its program. */
export interface CycleReport {
  readonly left: readonly string[];
  readonly worstOutlivedMs: number;
}

/**
 * Starts programs that train, kills each at a random moment, and looks for their leftovers: processes at once, all other kinds after
 * one more program that ends in order, since the next program sweeps the files of those that were killed.
 */
export async function killPrograms(
  workspace: Workspace,
  numCycles: number,
  chance: Chance,
): Promise<CycleReport> {
  const temporary = workspace.path("temporary");
  mkdirSync(temporary);
  const mark = `TROUPE_CHAOS=${randomUUID()}`;
  const [name = "", value = ""] = mark.split("=");
  const env = { ...process.env, [name]: value, TMPDIR: temporary };
  const pids = new Set<number>();
  const place = { mark, folder: temporary, pids };
  let before: Possessions | undefined;
  let worstOutlivedMs = 0;
  for (let cycle = 0; cycle <= numCycles; cycle++) {
    const program = start(workspace, chance.pick(placements), env);
    pids.add(program.pid as number);
    await untilHeard(program, chance.pick(["run.started", "step.finished"]));
    await pause(chance.below(200));
    program.kill(chance.pick(["SIGKILL", "SIGKILL", "SIGTERM"]));
    if (program.exitCode === null && program.signalCode === null) await once(program, "exit");
    worstOutlivedMs = Math.max(worstOutlivedMs, await untilAlone(place));
    // The first one opens what Node keeps open.
    before ??= possessions(place);
  }
  const last = start(workspace, "process", env);
  pids.add(last.pid as number);
  await untilHeard(last, "step.finished");
  last.kill("SIGTERM");
  await once(last, "exit");
  await untilAlone(place);
  return { left: leftovers(before as Possessions, possessions(place)), worstOutlivedMs };
}

/** Starts runs in this program and stops each at a moment that chance chooses; nothing of them may stay. */
export async function stopRuns(
  workspace: Workspace,
  numCycles: number,
  chance: Chance,
): Promise<CycleReport> {
  // Processes of this program bear no mark: their pipes would be among its descriptors.
  const place = { mark: "none", folder: workspace.folder, pids: new Set([process.pid]) };
  let before: Possessions | undefined;
  for (let cycle = 0; cycle <= numCycles; cycle++) {
    await stopRun(workspace, chance, chance.pick(placements));
    // The first one loads what stays loaded.
    before ??= possessions(place);
  }
  return { left: leftovers(before as Possessions, possessions(place)), worstOutlivedMs: 0 };
}

async function stopRun(workspace: Workspace, chance: Chance, placement: Placement): Promise<void> {
  const runtime = await Runtime.spawn({ ranks: 2, placement, threadsPerRank: 1, steps: 1_000_000 });
  const kind = chance.pick(["run.started", "actor.started", "step.finished"]);
  const begun = Promise.withResolvers<void>();
  runtime.events$.subscribe((event) => {
    if (event.kind === kind) begun.resolve();
  });
  const run = runtime.run(struckJob, { data: workspace.text, cache: workspace.path("cache"), pauseMs: 5 });
  const ended = run.catch(() => {});
  await begun.promise;
  await pause(chance.below(100));
  await runtime.stop();
  await ended;
}

function start(workspace: Workspace, placement: Placement, env: NodeJS.ProcessEnv): ChildProcess {
  const folder = workspace.path("run");
  mkdirSync(folder, { recursive: true });
  return fork(programFile, [placement, workspace.text, workspace.path("cache"), folder], {
    env,
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
}

function untilHeard(program: ChildProcess, kind: string): Promise<void> {
  return new Promise((resolve, reject) => {
    program.on("message", (heard) => heard === kind && resolve());
    program.once("exit", (code, signal) =>
      reject(new Error(`the program ended by itself: ${signal ?? code}`)),
    );
  });
}

/** @returns how long it took until no process with the mark ran any more, in ms */
async function untilAlone(place: Place): Promise<number> {
  const begin = performance.now();
  for (;;) {
    const sinceMs = performance.now() - begin;
    if (possessions(place).processes.length === 0 || sinceMs > GRACE_MS) return sinceMs;
    await pause(10);
  }
}

function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
