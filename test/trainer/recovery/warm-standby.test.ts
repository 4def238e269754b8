import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Worker } from "node:worker_threads";
import { afterAll, expect, it, onTestFinished } from "vitest";
import type { TroupeEvent } from "../../../src/entries/index.ts";
import { lossesOf, runTiny, Workspace } from "../../fixtures/run-tiny.ts";

const struckJob = new URL("../../fixtures/jobs/struck.ts", import.meta.url);
const others = ["rank-0", "rank-1", "shard-0", "shard-1"];
const cast = ["feeder", ...others];
const workspace = new Workspace();
afterAll(() => workspace[Symbol.dispose]());

it("a run has warm standbys after two seconds of steps: a death then starts no thread, and losses are the same", async () => {
  const steps = 17;
  const options = { ranks: 2, steps, warmStandby: true, checkpoint: { inMemoryEverySteps: 4 } };
  const strikes = workspace.path("strikes");
  mkdirSync(strikes);
  const started = watchThreads();
  const numAt = { failed: 0, restored: 0 };
  const onEvent = (event: TroupeEvent): void => {
    if (event.kind === "actor.failed") numAt.failed ||= started.length;
    if (event.kind === "run.restored") numAt.restored = started.length;
    // A second and a half after the others have begun to learn: four actors, one of them a step.
    if (event.kind === "step.finished" && event.step === 15 && numAt.failed === 0) {
      writeFileSync(join(strikes, "rank-1"), "exit");
    }
  };
  const { losses, error, events } = await runTiny(
    workspace,
    options,
    { strikes, pauseMs: 250 },
    struckJob,
    onEvent,
  );
  expect(error).toBeUndefined();
  expect(events.filter(({ kind }) => kind === "run.restored")).toHaveLength(1);
  const names = started.slice(0, numAt.failed).filter((name) => cast.includes(name));
  expect(names.toSorted()).toEqual([...cast, ...others].toSorted());
  expect(numAt.restored).toBe(numAt.failed);
  expect(losses).toEqual(await lossesOf(workspace, { ranks: 2, steps }));
});

it("has none where that is asked for", async () => {
  const started = watchThreads();
  const options = { ranks: 2, steps: 10, warmStandby: false };
  const { error } = await runTiny(workspace, options, { pauseMs: 250 }, struckJob);
  expect(error).toBeUndefined();
  const names = started.filter((name) => cast.includes(name));
  expect(names.toSorted()).toEqual(cast.toSorted());
});

/** The names of the threads that are started from now on, in that order. */
function watchThreads(): readonly string[] {
  const names: string[] = [];
  const enter = ({ threadName }: Worker): void => void names.push(threadName ?? "");
  process.on("worker", enter);
  onTestFinished(() => void process.off("worker", enter));
  return names;
}
