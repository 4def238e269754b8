import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { listCheckpoints, openStorage } from "../../../src/entries/checkpoint.ts";
import { Runtime } from "../../../src/entries/index.ts";
import { describeEvent } from "../../../src/job/events/index.ts";
import { ownerOf, standingOf } from "../../../src/library/checkpoint/index.ts";
import { patience } from "../../fixtures/patience.ts";
import { lossesOf, runTiny, tinyJob, Workspace } from "../../fixtures/run-tiny.ts";

describe("a run's folder", () => {
  const workspace = new Workspace();
  afterAll(() => workspace[Symbol.dispose]());
  const dir = workspace.path("runs");
  const checkpoint = { dir, everySteps: 2 };
  const stepsIn = async () => (await listCheckpoints(dir)).map(({ step }) => step);

  it("a run's folder is refused to another run, which learns what it may do instead and takes nothing from the first", async () => {
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
    await expect.poll(() => refused, patience).toMatchObject({ code: "CHECKPOINT_LOCKED" });
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

  it("a run's folder keeps its content if the run that replaces it fails before its first step", async () => {
    const kept = { dir: workspace.path("kept"), everySteps: 2 };
    expect((await runTiny(workspace, { steps: 2, checkpoint: kept })).error).toBeUndefined();
    const before = await ownerOf(await openStorage(kept.dir));
    const overwrite = { ...kept, overwrite: true };
    const tooLarge = await runTiny(workspace, { steps: 2, checkpoint: { ...overwrite, maxStagedBytes: 1 } });
    expect(tooLarge.error).toMatchObject({ code: "CHECKPOINT_STAGING" });
    const broken = await runTiny(workspace, { steps: 2, checkpoint: overwrite }, { layers: -1 });
    expect(broken.error).toBeInstanceOf(Error);
    expect((await listCheckpoints(kept.dir)).map(({ step }) => step)).toEqual([2]);
    expect(await ownerOf(await openStorage(kept.dir))).toEqual(before);
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

  it("is not changed or read by a run whose folder it replaced: that run's saves fail", async () => {
    const undisturbed = await lossesOf(workspace, { steps: 6 });
    const [own, other] = [workspace.path("own"), workspace.path("other")];
    const second = await runTiny(workspace, { steps: 6, seed: 7, checkpoint: { dir: other, everySteps: 2 } });
    expect(second.error).toBeUndefined();
    const before = filesIn(other);
    let isTaken = false;
    const saved: number[] = [];
    const outcome = await runTiny(
      workspace,
      { steps: 6, checkpoint: { dir: own, everySteps: 2, keepLast: 1 } },
      { fault: "exit", faultRank: 0, faultAt: 4, faultOnce: workspace.path("died-once") },
      undefined,
      (event) => {
        if (event.kind !== "checkpoint.saved") return;
        saved.push(event.step);
        if (isTaken) return;
        isTaken = true;
        renameSync(own, `${own}.old`);
        renameSync(other, own);
      },
    );
    expect(outcome.error).toBeUndefined();
    expect(saved).toEqual([2]);
    const failed = outcome.events.flatMap((event) =>
      event.kind === "checkpoint.failed" ? [event.error.message] : [],
    );
    expect(failed.at(-1)).toContain(
      `expected ${own} to be the folder that this writer has locked, got another in its place (put it back`,
    );
    expect(outcome.losses).toEqual(undisturbed);
    const rejected = outcome.events.flatMap((event) =>
      event.kind === "checkpoint.rejected" ? [event.error.code] : [],
    );
    expect(rejected).toContain("CHECKPOINT_TAKEN");
    expect(filesIn(own)).toEqual(before);
    expect((await listCheckpoints(`${own}.old`)).map(({ step }) => step)).toEqual([2]);
  });

  it("keeps a step's folder that is no checkpoint: it is not emptied, and a save of that step says so", async () => {
    const mixed = workspace.path("mixed");
    const notes = join(mixed, "step-000004", "notes.txt");
    mkdirSync(join(mixed, "step-000004"), { recursive: true });
    writeFileSync(notes, "mine");
    const overwriting = { dir: mixed, everySteps: 2, keepLast: 1, overwrite: true };
    const refused = await runTiny(workspace, { steps: 6, checkpoint: overwriting });
    expect(refused.error?.message).toBe(
      `[checkpoint] expected ${mixed}/step-000004 to be a checkpoint, which --overwrite may remove, got one without manifest.json (move it away: its files may be yours)`,
    );
    expect(refused.events.map(({ kind }) => kind)).not.toContain("step.finished");
    rmSync(mixed, { recursive: true });
    const { error, events } = await runTiny(
      workspace,
      { steps: 6, checkpoint: { dir: mixed, everySteps: 2, keepLast: 1 } },
      {},
      undefined,
      (event) => {
        if (event.kind !== "checkpoint.saved" || event.step !== 2) return;
        mkdirSync(join(mixed, "step-000004"));
        writeFileSync(notes, "mine");
      },
    );
    expect(error).toBeUndefined();
    const failed = events.flatMap((event) =>
      event.kind === "checkpoint.failed" ? [event.error.message] : [],
    );
    expect(failed).toEqual([
      expect.stringContaining("step-000004 to be a checkpoint, which a new one replaces"),
    ]);
    expect(readFileSync(notes, "utf8")).toBe("mine");
    expect((await listCheckpoints(mixed)).filter(({ damage }) => !damage).map(({ step }) => step)).toEqual([
      6,
    ]);
  });

  it("a run's folder is not made again when it is moved away: saves fail with an error, and no second run may use it", async () => {
    const gone = { dir: workspace.path("gone"), everySteps: 2 };
    const outcome = await runTiny(workspace, { steps: 6, checkpoint: gone }, {}, undefined, (event) => {
      if (event.kind === "checkpoint.saved" && event.step === 2) rmSync(gone.dir, { recursive: true });
    });
    expect(outcome.error).toBeUndefined();
    expect(outcome.losses).toHaveLength(6);
    const failed = outcome.events.flatMap((event) => (event.kind === "checkpoint.failed" ? event.step : []));
    expect(failed).toEqual([4, 6]);
    expect(existsSync(gone.dir)).toBe(false);
  });

  it("tells how its run stands: under way, finished, stopped or failed, each when it was", async () => {
    const standing = async (folder: string) => standingOf(await openStorage(folder), undefined);
    expect(await standing(dir)).toMatchObject({
      state: "ended",
      end: { how: "finished", at: expect.stringMatching(/^20/) },
    });
    const failing = { dir: workspace.path("failing"), everySteps: 1 };
    const under: unknown[] = [];
    const { error } = await runTiny(
      workspace,
      { steps: 4, checkpoint: failing },
      { fault: "throw", faultRank: 0, faultAt: 2 },
      undefined,
      (event) => {
        if (event.kind === "run.started") under.push(standing(failing.dir));
      },
    );
    expect(error).toBeDefined();
    expect(await under[0]).toMatchObject({ state: "running", holder: { pid: process.pid } });
    expect(await standing(failing.dir)).toMatchObject({ state: "ended", end: { how: "failed" } });
  });
});

/** Every file below a folder, and what it holds. */
function filesIn(folder: string): readonly (readonly [string, string])[] {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => [path.slice(folder.length), readFileSync(path, "base64")] as const)
    .toSorted(([a], [b]) => (a < b ? -1 : 1));
}
