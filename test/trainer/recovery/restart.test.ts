import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Worker } from "node:worker_threads";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { liveRefs, nativeInfo } from "../../../src/compute/tensor/index.ts";
import { stepFolder } from "../../../src/entries/checkpoint.ts";
import { lossesOf, runTiny, Workspace } from "../../fixtures/run-tiny.ts";

const struckJob = new URL("../../fixtures/jobs/struck.ts", import.meta.url);
const steps = 12;
const options = { ranks: 2, zero: 3, steps };

describe("a rank that dies", () => {
  const workspace = new Workspace();
  let undisturbed: readonly number[] = [];

  beforeAll(async () => {
    undisturbed = await lossesOf(workspace, options);
  });
  afterAll(() => workspace[Symbol.dispose]());

  it.each([0, 1, 11])(
    "a dead rank restarts the group, which repeats the undisturbed losses bit for bit and leaves no tensor under way: step %i",
    async (faultAt) => {
      const faultOnce = workspace.path(`died-at-${faultAt}`);
      const outcome = await runTiny(workspace, options, { fault: "exit", faultAt, faultOnce });
      expect(outcome.error).toBeUndefined();
      expect(existsSync(faultOnce)).toBe(true);
      expect(outcome.losses).toEqual(undisturbed);
      expect(
        outcome.events.filter((event) => event.kind === "actor.failed").map((event) => event.actor),
      ).toContain("rank-1");
      const restarted = outcome.events.flatMap((event) =>
        event.kind === "actor.restarted" ? [event.actor] : [],
      );
      expect(restarted.toSorted()).toEqual(["rank-0", "rank-1", "shard-0", "shard-1"]);
      expect(liveRefs()).toBe(0);
    },
  );

  it.each([2, 3, 4])(
    "a run survives a rank's death while a checkpoint is being saved: loss %i",
    async (faultAt) => {
      const name = `died-near-save-${faultAt}`;
      const config = { fault: "exit", faultAt, faultOnce: workspace.path(name) };
      const checkpoint = { dir: workspace.path(`${name}-run`), everySteps: 3 };
      const outcome = await runTiny(workspace, { ...options, checkpoint }, config);
      expect(outcome.error).toBeUndefined();
      expect(outcome.losses).toEqual(undisturbed);
      expect(outcome.events.at(-1)?.kind).toMatch(/run\.finished|actor\.stopped/);
      expect(readdirSync(checkpoint.dir)).toEqual(["latest", "run.json", ...[3, 6, 9, 12].map(stepFolder)]);
    },
  );

  it("a restarted group goes on from the newest checkpoint, not from the beginning", async () => {
    const config = { fault: "exit", faultAt: 10, faultOnce: workspace.path("died-after-save") };
    const dir = workspace.path("saved");
    const outcome = await runTiny(workspace, { ...options, checkpoint: { dir, everySteps: 4 } }, config);
    expect(outcome.error).toBeUndefined();
    expect(outcome.losses).toEqual(undisturbed);
    const made = outcome.events.flatMap((event) => (event.kind === "step.finished" ? [event.step] : []));
    expect(made.filter((step) => step <= 4)).toEqual([1, 2, 3, 4]);
  });

  // The first thread only stands by for the rank.
  it.each([
    [2, false],
    [Number.POSITIVE_INFINITY, true],
  ])(
    "a group whose rank dies as it starts is started again: %d of its threads die",
    async (numDeaths, isLost) => {
      let numThreads = 0;
      const strike = (worker: Worker) => {
        if (worker.threadName === "rank-1" && numThreads++ < numDeaths) void worker.terminate();
      };
      process.on("worker", strike);
      const outcome = await runTiny(workspace, { ...options, maxRestarts: 2 });
      process.off("worker", strike);
      const failed = outcome.events.flatMap((event) => (event.kind === "actor.failed" ? [event.actor] : []));
      expect(failed).toEqual(isLost ? ["rank-1", "rank-1", "rank-1"] : ["rank-1"]);
      expect(outcome.error?.message).toEqual(isLost ? expect.stringMatching(/^its thread /) : undefined);
      expect(outcome.losses).toEqual(isLost ? [] : undisturbed);
      expect(liveRefs()).toBe(0);
    },
  );

  it.skipIf(!nativeInfo().gloo)("a rank that waits for a dead one to join ends at once", async () => {
    const strikes = workspace.path("strikes");
    mkdirSync(strikes);
    writeFileSync(join(strikes, "rank-1-declares"), "exit");
    const outcome = await runTiny(
      workspace,
      { ranks: 2, tp: 2, placement: "process", steps: 2 },
      { strikes },
      struckJob,
    );
    expect(outcome.error).toBeUndefined();
    expect(outcome.events.map(({ kind }) => kind)).toContain("run.restored");
    const stopped = outcome.events.filter((event) => event.kind === "actor.stopped");
    expect(stopped.map(({ actor }) => actor)).toContain("rank-0");
    // An actor that does not end within 5 s is ended by force.
    expect(stopped.filter(({ forced }) => forced)).toEqual([]);
  });

  it("a rank that dies too often fails the run with the first cause, and leaves no tensor under way", async () => {
    const outcome = await runTiny(workspace, { ...options, maxRestarts: 2 }, { fault: "exit", faultAt: 2 });
    expect(outcome.error?.message).toMatch(/exit code 7/);
    expect(outcome.events.at(-1)?.kind).not.toBe("run.finished");
    expect(outcome.events.some((event) => event.kind === "run.failed")).toBe(true);
    expect(liveRefs()).toBe(0);
  });
});

describe("an error that would only come back", () => {
  const workspace = new Workspace();
  afterAll(() => workspace[Symbol.dispose]());

  it("ends the run at once when a job throws, with the job's own words", async () => {
    const outcome = await runTiny(workspace, options, { fault: "throw", faultAt: 3 });
    expect(outcome.error?.message).toContain("the job has a bug");
    // The other rank may not have reported its third step yet when this one throws in the fourth.
    expect([2, 3]).toContain(outcome.losses.length);
    expect(outcome.events.some((event) => event.kind === "actor.restarted")).toBe(false);
  });

  it("ends the run at once when a loss is not a number, naming step and rank", async () => {
    const outcome = await runTiny(workspace, options, { fault: "nan", faultAt: 4 });
    expect(outcome.error).toMatchObject({ code: "LOSS_NOT_FINITE" });
    expect(outcome.error?.message).toMatch(/\[step 5\] expected a finite loss on rank 1, got NaN/);
  });
});

describe("a rank that hangs", () => {
  const workspace = new Workspace();
  afterAll(() => workspace[Symbol.dispose]());

  it("ends the run after the deadline and is named, with what everyone else waits for", async () => {
    const outcome = await runTiny(
      workspace,
      { ...options, deadlineMs: 8_000 },
      { fault: "hang", faultAt: 2 },
    );
    expect(outcome.error).toMatchObject({ code: "RUN_HUNG" });
    expect(outcome.error?.message).toMatch(/rank-1 handling step since \d+\.\d s, step {2}#2/);
    expect(outcome.error?.message).toMatch(/shard-0 idle since .*, reduce root #2/);
    expect(outcome.losses).toHaveLength(2);
  });
});
