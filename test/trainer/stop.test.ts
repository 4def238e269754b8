import { afterAll, describe, expect, it } from "vitest";
import { Runtime, type TroupeEvent } from "../../src/entries/index.ts";
import { tinyJob, Workspace } from "../fixtures/run-tiny.ts";

const workspace = new Workspace();
afterAll(() => workspace[Symbol.dispose]());

describe("a run that is stopped", () => {
  // Before the ranks have started, while they are starting, and between steps.
  it.each(["actor.started", "run.started", "step.finished"] as const)(
    "fails and leaves no actor: at the first %s",
    async (kind) => {
      const runtime = await Runtime.spawn({ ranks: 2, steps: 100_000, threadsPerRank: 1 });
      runtime.events$.subscribe((event) => {
        if (event.kind === kind) void runtime.stop();
      });
      const run = runtime.run(tinyJob, { data: workspace.text, cache: workspace.path("cache") });
      const code =
        kind === "step.finished"
          ? "RUN_STOPPED"
          : expect.stringMatching(/^(RUN|SYSTEM)_STOPPED$|^ACTOR_DOWN$/);
      await expect(run).rejects.toMatchObject({ code });
      expect(runtime.inspect()).toEqual([]);
    },
  );

  it("is followed by none: what begins while it ends is refused", async () => {
    const runtime = await Runtime.spawn({ ranks: 1, steps: 100_000, threadsPerRank: 1, warmStandby: false });
    const config = { data: workspace.text, cache: workspace.path("cache") };
    const begun = Promise.withResolvers<void>();
    runtime.once("step.finished", () => begun.resolve());
    const run = runtime.run(tinyJob, config);
    run.catch(() => {}); // it is looked at below
    await begun.promise;
    const stopped = runtime.stop();
    // Past the questions that the end begins with; the run's threads still live.
    await new Promise(setImmediate);
    const late = runtime.open(tinyJob, config, { name: "late" });
    await expect(late).rejects.toMatchObject({ code: "RUN_IN_PROGRESS" });
    await stopped;
    await expect(run).rejects.toMatchObject({ code: "RUN_STOPPED" });
    expect(runtime.inspect()).toEqual([]);
  });

  it("tells the end of a save that is under way, before its own", async () => {
    const checkpoint = { dir: workspace.path("stopped"), everySteps: 1 };
    const runtime = await Runtime.spawn({ ranks: 2, steps: 100_000, threadsPerRank: 1, checkpoint });
    const events: TroupeEvent[] = [];
    runtime.events$.subscribe((event) => {
      events.push(event);
      if (event.kind === "checkpoint.started") void runtime.stop();
    });
    const run = runtime.run(tinyJob, { data: workspace.text, cache: workspace.path("cache") });
    await expect(run).rejects.toMatchObject({ code: "RUN_STOPPED" });
    const steps = (...kinds: string[]) =>
      events.flatMap((event) => (kinds.includes(event.kind) && "step" in event ? event.step : []));
    expect(steps("checkpoint.saved", "checkpoint.failed")).toEqual(steps("checkpoint.started"));
    const kinds = events.map(({ kind }) => kind);
    expect(kinds.slice(kinds.indexOf("run.failed"))).not.toContainEqual(expect.stringMatching("checkpoint"));
  });
});
