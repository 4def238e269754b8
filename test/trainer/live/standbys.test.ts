import type { Worker } from "node:worker_threads";
import { afterAll, expect, it, onTestFinished, vi } from "vitest";
import { Chance } from "../../chaos/chance.ts";
import { ActorThreads } from "../../chaos/faults.ts";
import { patience } from "../../fixtures/patience.ts";
import { Workspace } from "../../fixtures/run-tiny.ts";
import { lossesIn, type Policy, rangeAt, withModel } from "./script.ts";

const workspace = new Workspace();
afterAll(() => workspace[Symbol.dispose]());

const others = ["rank-0", "rank-1", "shard-0", "shard-1"];
const cast = ["feeder", ...others];

async function train(model: Policy, from: number, to: number): Promise<void> {
  for (let step = from; step < to; step++) {
    void model.accumulate("loss", rangeAt(step));
    await model.step({ lr: 1e-2 });
  }
}

it("a live model has warm standbys from its opening on: a death starts no thread, and changes no bit", async () => {
  const calm = await withModel(workspace, { ranks: 2, zero: 3 }, {}, (model) => train(model, 0, 4));
  const started: string[] = [];
  const enter = ({ threadName = "" }: Worker) =>
    void (cast.includes(threadName ?? "") && started.push(threadName ?? ""));
  process.on("worker", enter);
  onTestFinished(() => void process.off("worker", enter));
  using threads = new ActorThreads();
  const numAt = { failed: 0, restored: 0 };
  const layout = { ranks: 2, zero: 3, warmStandby: undefined } as const;
  const events = await withModel(workspace, layout, {}, async (model, runtime) => {
    runtime.on("actor.failed", () => {
      numAt.failed ||= started.length;
    });
    runtime.on("run.restored", () => {
      numAt.restored = started.length;
    });
    await train(model, 0, 2);
    // The script makes no call, and they come nevertheless.
    await vi.waitFor(() => expect(started.toSorted()).toEqual([...cast, ...others].toSorted()), patience);
    expect(threads.endOne(new Chance(1), /^rank-1$/)).toBe("rank-1");
    await train(model, 2, 4);
  });
  expect(lossesIn(events)).toEqual(lossesIn(calm));
  expect(numAt).toEqual({ failed: 9, restored: 9 });
  const restored = events.filter((event) => event.kind === "run.restored");
  expect(restored).toEqual([expect.objectContaining({ from: "beginning", step: 0 })]);
  for (const { startedMs, joinedMs, durationMs } of restored)
    expect([0, startedMs, joinedMs, durationMs].toSorted((a, b) => a - b)).toEqual([
      0,
      startedMs,
      joinedMs,
      durationMs,
    ]);
});
