import { dirname } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openCheckpoint } from "../../src/entries/checkpoint.ts";
import { type RunResult, Runtime, type RuntimeOptions } from "../../src/entries/index.ts";
import { lossesOf, tinyJob, Workspace } from "../fixtures/run-tiny.ts";

const steps = 12;
const never = 1_000_000;
const workspace = new Workspace();
const config = { data: workspace.text, cache: workspace.path("cache") };
let undisturbed: readonly number[] = [];

beforeAll(async () => {
  undisturbed = await lossesOf(workspace, { ranks: 2, zero: 3, steps });
});
afterAll(() => workspace[Symbol.dispose]());

/** A run that receives orders while it is under way. */
class Ordered implements AsyncDisposable {
  readonly runtime: Runtime;
  readonly losses: number[] = [];
  /** Steps whose save was reported as begun, and as durable. */
  readonly saves: string[] = [];

  private constructor(runtime: Runtime) {
    this.runtime = runtime;
    runtime.on("step.finished", ({ step, lossNats }) => {
      this.losses[step - 1] = lossNats;
    });
    runtime.on("checkpoint.started", ({ step }) => this.saves.push(`started ${step}`));
    runtime.on("checkpoint.saved", ({ step }) => this.saves.push(`saved ${step}`));
  }

  static async spawn(name: string, options: RuntimeOptions = {}): Promise<Ordered> {
    const checkpoint = { dir: workspace.path(name), everySteps: never };
    const defaults = { ranks: 2, zero: 3, steps, threadsPerRank: 1, warmStandby: false, checkpoint };
    return new Ordered(await Runtime.spawn({ ...defaults, ...options }));
  }

  train(overrides: Readonly<Record<string, unknown>> = {}): Promise<RunResult> {
    const run = this.runtime.run(tinyJob, { ...config, ...overrides });
    run.catch(() => {});
    return run;
  }

  /** Resolves when a step is reported. */
  until(step: number): Promise<void> {
    return new Promise((resolve) => {
      this.runtime.on("step.finished", (event) => {
        if (event.step === step) resolve();
      });
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.runtime.stop();
  }
}

let numResumed = 0;

/** The losses of a run that goes on from a checkpoint, with those before it. */
async function resumed(path: string, before: readonly number[]): Promise<readonly number[]> {
  await using rest = await Ordered.spawn(`resumed-${numResumed++}`, { resume: path });
  await rest.train();
  return [...before, ...rest.losses.slice(before.length)];
}

describe("a run that is asked to save", () => {
  it("has the state after the step under way durable when the promise resolves, while it trains on", async () => {
    await using run = await Ordered.spawn("saved");
    const over = run.train();
    // Before the first step: what is saved is what the first one makes.
    const first = run.runtime.save();
    // However fast it trains, it is not over when the disk has the first.
    run.runtime.once("checkpoint.started", () => void run.runtime.pause());
    {
      await using checkpoint = await openCheckpoint((await first).path);
      expect(checkpoint.state.step).toBe(1);
    }
    run.runtime.resume();
    const later = await Promise.all([run.runtime.save(), run.runtime.save()]);
    expect(later[0].step).toBe(later[1].step);
    expect(later[0].step).toBeGreaterThan(1);
    expect((await over).steps).toBe(steps);
    expect(run.losses).toEqual(undisturbed);
    expect(await resumed(later[0].path, undisturbed.slice(0, later[0].step))).toEqual(undisturbed);
  });

  it("saves a later step of the generation that follows where a rank dies in between", async () => {
    await using run = await Ordered.spawn("struck");
    const over = run.train({ fault: "exit", faultAt: 4, faultOnce: workspace.path("struck-once") });
    await run.until(3);
    const saved = await run.runtime.save();
    await over;
    expect(run.losses).toEqual(undisturbed);
    expect(await resumed(saved.path, undisturbed.slice(0, saved.step))).toEqual(undisturbed);
  });

  it("says what is missing: a folder, a run", async () => {
    await using runtime = await Runtime.spawn({ ranks: 1 });
    await expect(runtime.save()).rejects.toMatchObject({ code: "RUN_OVER" });
    await expect(runtime.pause()).rejects.toMatchObject({ code: "RUN_OVER" });
    expect(() => runtime.resume()).toThrow(expect.objectContaining({ code: "RUN_OVER" }));
    const run = runtime.run(tinyJob, { ...config, steps: never });
    run.catch(() => {});
    await expect(runtime.save()).rejects.toMatchObject({ code: "OPTION" });
    await expect(runtime.stop({ save: true })).rejects.toMatchObject({ code: "OPTION" });
    await runtime.pause();
    await runtime.stop();
    await expect(run).rejects.toMatchObject({ code: "RUN_STOPPED" });
  });
});

describe("a run that is asked to save and end", () => {
  it.each(["thread", "process"] as const)(
    "makes the steps that were granted, and leaves a state that another goes on from: %s",
    async (placement) => {
      await using run = await Ordered.spawn(`ended-${placement}`, { placement });
      const over = run.train();
      await run.until(3);
      await run.runtime.stop({ save: true });
      const { steps: made, saveError } = await over;
      expect(saveError).toBeUndefined();
      expect(made).toBeGreaterThanOrEqual(3);
      expect(run.saves).toEqual([`started ${made}`, `saved ${made}`]);
      expect(run.losses).toEqual(undisturbed.slice(0, made));
      expect(await resumed(workspace.path(`ended-${placement}`), run.losses)).toEqual(undisturbed);
    },
  );

  it("waits for the save that is under way, and saves what was made since", async () => {
    const checkpoint = { dir: workspace.path("mid-save"), everySteps: 2 };
    await using run = await Ordered.spawn("mid-save", { checkpoint });
    const stopped = new Promise<void>((resolve, reject) => {
      run.runtime.once("checkpoint.started", () => run.runtime.stop({ save: true }).then(resolve, reject));
    });
    const { steps: made } = await run.train();
    await stopped;
    expect(run.saves.at(-1)).toBe(`saved ${made}`);
    expect(await resumed(checkpoint.dir, run.losses)).toEqual(undisturbed);
  });

  it("saves where it began, before the first step", async () => {
    await using run = await Ordered.spawn("at-once");
    const over = run.train();
    await run.runtime.stop({ save: true });
    expect((await over).steps).toBe(0);
    expect(run.saves).toEqual(["started 0", "saved 0"]);
    expect(await resumed(workspace.path("at-once"), [])).toEqual(undisturbed);
  });
});

describe("a run that is paused", () => {
  it("grants no step until it is resumed, saves what is done meanwhile, and has the undisturbed losses", async () => {
    await using run = await Ordered.spawn("paused");
    const over = run.train();
    expect(await run.runtime.pause()).toBe(0);
    const begun = await run.runtime.save();
    expect([begun.step, run.losses]).toEqual([0, []]);
    run.runtime.resume();
    await run.until(4);
    const made = await run.runtime.pause();
    const [saved, again] = [await run.runtime.save(), await run.runtime.save()];
    expect([saved.step, again.path, dirname(again.path)]).toEqual([
      made,
      saved.path,
      workspace.path("paused"),
    ]);
    expect(run.losses.length).toBe(made);
    run.runtime.resume();
    await over;
    expect(run.losses).toEqual(undisturbed);
    expect(await resumed(saved.path, undisturbed.slice(0, made))).toEqual(undisturbed);
  });

  it("ends at its present step when it is asked to save and end", async () => {
    const checkpoint = { dir: workspace.path("both"), everySteps: never, inMemoryEverySteps: 1 };
    await using run = await Ordered.spawn("both", { checkpoint });
    const over = run.train();
    await run.until(2);
    const made = await run.runtime.pause();
    await run.runtime.stop({ save: true });
    expect((await over).steps).toBe(made);
    expect(await resumed(checkpoint.dir, run.losses)).toEqual(undisturbed);
  });
});
