import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { listCheckpoints } from "../../src/entries/checkpoint.ts";
import {
  type EventKind,
  type RunResult,
  Runtime,
  type RuntimeOptions,
  type TroupeEvent,
} from "../../src/entries/index.ts";
import { lossesOf, runTiny, tinyJob, Workspace } from "../fixtures/run-tiny.ts";

const workspace = new Workspace();
const spread = { ranks: 2, zero: 3 } as const;
const pipeline = { ranks: 2, pp: 2, accumulation: 2 } as const;
const steps = 400;
/** More than any of them makes until its signal is heard. */
const numCompared = 30;
/** Evaluates after every third step, and lets each be seen. */
const config = { evaluateEvery: 3, evaluationSamples: 4 };

interface Interrupted {
  readonly result: RunResult;
  readonly events: readonly TroupeEvent[];
}

/** A run that sends itself a signal once. */
async function interrupted(
  options: RuntimeOptions,
  signal: NodeJS.Signals,
  when: (event: TroupeEvent) => boolean,
): Promise<Interrupted> {
  const events: TroupeEvent[] = [];
  await using runtime = await Runtime.spawn({
    signals: true,
    threadsPerRank: 1,
    warmStandby: false,
    steps,
    ...options,
  });
  let isSent = false;
  runtime.events$.subscribe((event) => {
    events.push(event);
    if (isSent || !when(event)) return;
    isSent = true;
    process.kill(process.pid, signal);
  });
  const result = await runtime.run(tinyJob, {
    data: workspace.text,
    cache: workspace.path("cache"),
    ...config,
  });
  return { result, events };
}

const at =
  (kind: EventKind, step?: number) =>
  (event: TroupeEvent): boolean =>
    event.kind === kind && (step === undefined || ("step" in event && event.step === step));

function lossesIn(events: readonly TroupeEvent[]): number[] {
  return events.flatMap((event) => (event.kind === "step.finished" ? event.lossNats : []));
}

/** Whether a process listens where Node's inspector does. */
function hasInspector(pid: number): boolean {
  const sockets = readdirSync(`/proc/${pid}/fd`).map((fd) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${fd}`);
    } catch {
      return ""; // closed meanwhile
    }
  });
  const lines = readFileSync(`/proc/${pid}/net/tcp`, "utf8").split("\n");
  const inodes = lines.flatMap((line) =>
    /:240D \S+ 0A /.test(line) ? (line.trim().split(/\s+/)[9] ?? []) : [],
  );
  return inodes.some((inode) => sockets.includes(`socket:[${inode}]`));
}

const newestIn = async (dir: string) => (await listCheckpoints(dir))[0];

describe("a signal", () => {
  let straight: readonly number[] = [];
  let staged: readonly number[] = [];
  beforeAll(async () => {
    straight = await lossesOf(workspace, { ...spread, steps: numCompared }, config);
    staged = await lossesOf(workspace, { ...pipeline, steps: numCompared }, config);
  });
  afterAll(() => workspace[Symbol.dispose]());

  it.each<[string, NodeJS.Signals, RuntimeOptions, (event: TroupeEvent) => boolean]>([
    ["in a step of threads", "SIGINT", spread, at("step.finished", 4)],
    ["in a step of processes", "SIGHUP", { ...spread, placement: "process" }, at("step.finished", 2)],
    ["in a pipeline", "SIGTERM", pipeline, at("step.finished", 2)],
    ["in mid-save", "SIGUSR1", spread, at("checkpoint.started", 5)],
    ["in an evaluation", "SIGUSR2", spread, at("step.finished", 3)],
    ["before the ranks are there", "SIGTERM", spread, at("run.started")],
    ["while processes start", "SIGINT", { ...spread, placement: "process" }, at("actor.started")],
  ])("%s lets the run save its state, and end", async (what, signal, options, when) => {
    const dir = workspace.path(what.replaceAll(" ", "-"));
    const checkpoint = { dir, everySteps: 5 };
    const { result, events } = await interrupted({ ...options, checkpoint }, signal, when);
    expect(result.interruptedBy).toBe(signal);
    expect(result.saveError).toBeUndefined();
    expect(result.steps).toBeLessThan(numCompared);
    const newest = await newestIn(dir);
    expect(newest).toMatchObject({ step: result.steps, foreign: false });
    expect(newest?.damage).toBeUndefined();
    const expected = options === pipeline ? staged : straight;
    expect(lossesIn(events)).toEqual(expected.slice(0, result.steps));
    // The end of each save and evaluation that had begun is reported before the run's own.
    const count = (kind: EventKind) => events.filter((event) => event.kind === kind).length;
    expect(count("checkpoint.saved")).toBe(count("checkpoint.started"));
    expect(count("evaluation.finished")).toBe(Math.floor(result.steps / config.evaluateEvery));
    const went = { ...options, steps: result.steps + 2, resume: dir };
    const { error, losses } = await runTiny(workspace, went, config);
    expect(error).toBeUndefined();
    expect(losses.slice(result.steps)).toEqual(expected.slice(result.steps, result.steps + 2));
  });

  it("a signal while the run is paused saves its present state", async () => {
    const checkpoint = { dir: workspace.path("paused"), everySteps: 1000 };
    await using runtime = await Runtime.spawn({
      ...spread,
      signals: true,
      threadsPerRank: 1,
      steps,
      checkpoint,
    });
    const running = runtime.run(tinyJob, { data: workspace.text, cache: workspace.path("cache"), ...config });
    await new Promise<void>((resolve) => runtime.once("step.finished", () => resolve()));
    const made = await runtime.pause();
    process.kill(process.pid, "SIGTERM");
    expect(await running).toMatchObject({ interruptedBy: "SIGTERM", steps: made });
    expect(await newestIn(checkpoint.dir)).toMatchObject({ step: made });
  });

  it("is left alone by a script's run that does not ask for it", async () => {
    let numHeard = 0;
    const hear = () => {
      numHeard += 1;
    };
    process.on("SIGUSR2", hear);
    try {
      const { error, losses } = await runTiny(
        workspace,
        { ...spread, steps: 4 },
        config,
        undefined,
        (event) => {
          if (at("step.finished", 2)(event)) process.kill(process.pid, "SIGUSR2");
        },
      );
      expect(error).toBeUndefined();
      expect(losses).toEqual(straight.slice(0, 4));
    } finally {
      process.off("SIGUSR2", hear);
    }
    expect(numHeard).toBe(1);
  });

  it("to a process of ranks ends nothing and opens no inspector: what a scheduler sends, it sends to all of them", async () => {
    await using runtime = await Runtime.spawn({
      ...spread,
      placement: "process",
      threadsPerRank: 1,
      warmStandby: false,
      steps: numCompared,
    });
    let pids: readonly number[] = [];
    let numInspectors = 0;
    const losses: number[] = [];
    runtime.on("step.finished", ({ step, lossNats }) => {
      losses.push(lossNats);
      if (step === 2) {
        pids = [...new Set(runtime.inspect().map(({ pid }) => pid))].filter((pid) => pid !== process.pid);
        for (const pid of pids)
          for (const signal of ["SIGUSR1", "SIGUSR2", "SIGHUP", "SIGINT"] as const) process.kill(pid, signal);
      }
      if (step === numCompared - 2) numInspectors = pids.filter(hasInspector).length;
    });
    await runtime.run(tinyJob, { data: workspace.text, cache: workspace.path("cache"), ...config });
    expect([pids.length, numInspectors]).toEqual([2, 0]);
    expect(losses).toEqual(straight);
  });
});
