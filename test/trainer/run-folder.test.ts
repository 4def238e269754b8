import { readdirSync } from "node:fs";
import { afterAll, describe, expect, it } from "vitest";
import { describeEvent } from "../../src/events/index.ts";
import { listCheckpoints, openStorage, ownerOf, Runtime } from "../../src/index.ts";
import { runTiny, tinyJob, Workspace } from "../fixtures/run-tiny.ts";

describe("a run's folder", () => {
  const workspace = new Workspace();
  afterAll(() => workspace[Symbol.dispose]());
  const dir = workspace.path("runs");
  const checkpoint = { dir, everySteps: 2 };
  const stepsIn = async () => (await listCheckpoints(dir)).map(({ step }) => step);

  it("is refused to another run, which is told what it may do instead and takes nothing from the first", async () => {
    const first = await runTiny(workspace, { steps: 4, checkpoint });
    expect(first.error).toBeUndefined();
    const before = readdirSync(dir);
    const second = await runTiny(workspace, {
      steps: 6,
      seed: 7,
      checkpoint: { ...checkpoint, keepLast: 1 },
    });
    expect(second.error).toMatchObject({ code: "CHECKPOINT_TAKEN" });
    expect(second.error?.message).toContain(
      `up to step 4 (go on with it: --resume ${dir}; remove it: --overwrite`,
    );
    expect(second.events.map(({ kind }) => kind)).not.toContain("step.finished");
    expect(readdirSync(dir)).toEqual(before);
  });

  it("stays that run's when it goes on there: one id in every manifest, however often", async () => {
    const owner = await ownerOf(await openStorage(dir));
    expect(owner).toMatchObject({ job: expect.stringContaining("tiny.ts") });
    const { error } = await runTiny(workspace, { steps: 6, checkpoint, resume: dir });
    expect(error).toBeUndefined();
    const listed = await listCheckpoints(dir);
    expect(listed.map(({ step, run }) => [step, run?.id])).toEqual(
      [6, 4, 2].map((step) => [step, owner?.id]),
    );
  });

  it("is another's where it goes on elsewhere, which names the run that it comes from", async () => {
    const elsewhere = workspace.path("elsewhere");
    const { error } = await runTiny(workspace, {
      steps: 8,
      checkpoint: { dir: elsewhere, everySteps: 8 },
      resume: dir,
    });
    expect(error).toBeUndefined();
    const [from, to] = await Promise.all(
      [dir, elsewhere].map(async (place) => ownerOf(await openStorage(place))),
    );
    expect(to?.id).not.toBe(from?.id);
    expect(to?.parent).toBe(from?.id);
    expect(await stepsIn()).toEqual([6, 4, 2]);
  });

  it("is locked while the run lasts: a second program's run ends before it begins, and the first goes on", async () => {
    const busy = { dir: workspace.path("busy"), everySteps: 2 };
    await using runtime = await Runtime.spawn({
      steps: 4,
      checkpoint: busy,
      threadsPerRank: 1,
      warmStandby: false,
    });
    let refused: unknown;
    runtime.on("run.started", async () => {
      refused = (await runTiny(workspace, { steps: 4, checkpoint: busy })).error;
    });

    const running = runtime.run(tinyJob, { data: workspace.text, cache: workspace.path("cache") });
    const paused = runtime.pause();
    await expect.poll(() => refused, { timeout: 100_000 }).toMatchObject({ code: "CHECKPOINT_LOCKED" });
    await paused;
    runtime.resume();
    expect((await running).steps).toBe(4);
    expect((await listCheckpoints(busy.dir)).map(({ step }) => step)).toEqual([4, 2]);
  });

  it("has nothing left for a run that is over, which says so; one that should have ended before is refused", async () => {
    const over = await runTiny(workspace, { steps: 6, checkpoint, resume: dir });
    expect(over.error).toBeUndefined();
    expect(over.losses).toEqual([]);
    const finished = over.events.find(({ kind }) => kind === "run.finished");
    expect(finished && describeEvent(finished)?.text).toBe(
      "done: 6 steps were made before, nothing is left to train",
    );
    const { error } = await runTiny(workspace, { steps: 3, checkpoint, resume: dir });
    expect(error?.message).toBe(
      "[resume] expected a checkpoint of at most step 3, the last of the run, got step 6 (nothing is left to train: give more steps, or an earlier checkpoint)",
    );
    expect(await stepsIn()).toEqual([6, 4, 2]);
  });

  it("is emptied for another run that says so, and only then", async () => {
    const { error } = await runTiny(workspace, { steps: 2, checkpoint: { ...checkpoint, overwrite: true } });
    expect(error).toBeUndefined();
    expect(await stepsIn()).toEqual([2]);
    const both = await runTiny(workspace, {
      steps: 4,
      checkpoint: { ...checkpoint, overwrite: true },
      resume: dir,
    });
    expect(both.error?.message).toContain("[options] expected checkpoint.overwrite to be left out");
  });
});
