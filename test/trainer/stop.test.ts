import { afterAll, describe, expect, it } from "vitest";
import { Runtime } from "../../src/index.ts";
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
});
