import { describe, expect, it } from "vitest";
import { RunView } from "../../src/job/dashboard/run-view.ts";
import type { TroupeEvent } from "../../src/job/events/index.ts";
import { samples } from "../events/samples.ts";
import { begun, stamped, stepped } from "./stepped.ts";

function viewOf(...events: readonly TroupeEvent[]): RunView {
  const view = new RunView(() => 0);
  for (const event of events) view.apply(event);
  return view;
}

describe("RunView", () => {
  it("takes up every kind of event", () => {
    const view = viewOf(...Object.values(samples).map((sample) => stamped(sample)));
    expect(view.takeChange()).toBeDefined();
    expect(view.takeChange()).toBeUndefined();
  });

  it("follows a run from its beginning to its end", () => {
    const view = viewOf();
    expect(view.complete().run?.state).toBe("waiting");
    view.apply(begun({ job: "job.ts" }));
    expect(view.complete().run).toMatchObject({ state: "running", step: 0, facts: { job: "job.ts" } });
    view.apply(stepped(1, { numTokens: 100, durationMs: 20 }));
    view.apply(stepped(2, { numTokens: 100, durationMs: 40 }));
    expect(view.complete().run).toMatchObject({ step: 2, lossNats: 2, numTokens: 200, stepMs: 21 });
    view.apply(stamped({ ...samples["evaluation.finished"], lossNats: 2.5 }));
    expect(view.complete().run).toMatchObject({ evaluationLossNats: 2.5 });
    expect(view.complete().evaluations?.columns).toMatchObject({
      "loss/auxiliary": [0.0051],
      "metric/accuracy": [0.5],
    });
    view.apply(
      stamped({
        ...samples["evaluation.finished"],
        split: "test",
        lossNats: 3,
        losses: {},
        metrics: { f1: 0.75 },
      }),
    );
    expect(view.complete().run).toMatchObject({ evaluationLossNats: 2.5 });
    expect(view.complete().evaluations?.columns).toMatchObject({
      lossNats: [2.5],
      "metric/accuracy": [0.5],
      "loss/test": [3],
      "metric/test f1": [0.75],
    });
    view.apply(stamped({ ...samples["run.finished"], steps: 2 }, 3_000_000));
    expect(view.complete().run).toMatchObject({ state: "finished", step: 2, endedAtMs: 3_000_000 });
  });

  it("goes back with a run that is restored, and counts that", () => {
    const view = viewOf(begun(), ...[1, 2, 3, 4, 5].map((step) => stepped(step)));
    view.apply(stamped(samples["actor.failed"]));
    expect(view.complete().run?.state).toBe("restarting");
    view.apply(stamped({ ...samples["run.restored"], step: 2 }));
    expect(view.complete()).toMatchObject({
      run: { step: 2, numRestarts: 1 },
      steps: { columns: { step: [1, 2] } },
    });
    expect(view.complete().incidents?.at(-1)).toMatchObject({ step: 5, restart: true });
    view.apply(stepped(3));
    expect(view.complete().run).toMatchObject({ state: "running", step: 3 });
  });

  it("keeps the steps before the one that a resumed run begins with, and none of another job", () => {
    const before = [begun({ job: "a" }), ...[1, 2, 3].map((step) => stepped(step))];
    const resumed = viewOf(...before, begun({ job: "a", firstStep: 2 }));
    expect(resumed.complete().steps?.columns.step).toEqual([1, 2]);
    const other = viewOf(...before, begun({ job: "b", firstStep: 2 }));
    expect(other.complete().steps?.columns.step ?? []).toEqual([]);
    const next = viewOf(...before, begun({ job: "a" }));
    expect(next.complete().steps?.columns.step ?? []).toEqual([]);
  });

  it("tells a checkpoint from its beginning to its end, and drops one that its run did not live to see", () => {
    const view = viewOf(begun(), stamped({ ...samples["checkpoint.started"], step: 10 }, 5));
    expect(view.complete().checkpoints?.latest).toMatchObject([
      { step: 10, state: "saving", startedAtMs: 5 },
    ]);
    view.apply(stamped({ kind: "checkpoint.progressed", step: 10, writtenBytes: 5, totalBytes: 20 }));
    expect(view.complete().checkpoints?.latest).toMatchObject([
      { state: "saving", writtenBytes: 5, startedAtMs: 5 },
    ]);
    view.apply(stamped({ ...samples["checkpoint.saved"], step: 10, sizeBytes: 20 }));
    view.apply(stamped({ ...samples["checkpoint.failed"], step: 20 }));
    view.apply(stamped({ ...samples["checkpoint.started"], step: 30 }));
    view.apply(stamped(samples["run.failed"]));
    expect(view.complete().checkpoints).toMatchObject({
      numSaved: 1,
      numFailed: 1,
      latest: [
        { step: 10, state: "saved", totalBytes: 20 },
        { step: 20, state: "failed" },
      ],
    });
  });

  it("tells what happens again and again once, with how often, and a group's restart as one thing", () => {
    const undelivered = stamped(samples["message.undelivered"]);
    const restarted = ["rank-0", "rank-1"].map((actor) =>
      stamped({ kind: "actor.restarted", actor, incarnation: 2 }),
    );
    const view = viewOf(begun(), undelivered, undelivered, ...restarted);
    expect(view.complete().incidents).toMatchObject([
      { count: 2 },
      { text: "2 actors started again", count: 1 },
    ]);
  });

  it("sums memory over the ranks, by kind", () => {
    const held = (rank: number, step: number, liveBytes: number) =>
      stamped({ kind: "memory.measured", rank, step, byKind: { parameters: { liveBytes, peakBytes: 9 } } });
    const view = viewOf(begun(), held(0, 10, 1), held(1, 10, 2), held(0, 20, 4), held(1, 20, 8));
    expect(view.complete().memory?.columns).toEqual({ step: [10, 20], parameters: [3, 12] });
    // A step that is made again is measured again.
    view.apply(stamped({ ...samples["run.restored"], step: 12 }));
    for (const rank of [0, 1]) view.apply(held(rank, 20, 16));
    expect(view.complete().memory?.columns).toEqual({ step: [10, 20], parameters: [3, 32] });
  });

  it("holds a bounded amount of whatever comes", () => {
    const view = viewOf(begun());
    for (let step = 1; step <= 6000; step++) {
      view.apply(stepped(step));
      view.apply(stamped({ ...samples["checkpoint.saved"], step }));
      view.apply(stamped({ ...samples["anomaly.detected"], step }));
      view.apply(stamped({ kind: "actor.started", actor: `actor-${step}`, incarnation: 1 }));
    }
    const { steps, checkpoints, incidents, actors } = view.complete();
    expect(steps?.columns.step?.length).toBeLessThan(2100);
    expect(checkpoints?.latest.length).toBeLessThan(20);
    expect(incidents?.length).toBeLessThanOrEqual(100);
    expect(actors?.length).toBeLessThanOrEqual(4096);
  });
});
