import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Runtime } from "../../../src/entries/index.ts";
import { nativeInfo } from "../../../src/entries/tensor.ts";
import { portsOf } from "../../chaos/leftovers.ts";
import { atEachStep, lossesOf, runTiny, tinyJob, Workspace } from "../../fixtures/run-tiny.ts";

const steps = 12;

describe("ranks in processes of their own", () => {
  const workspace = new Workspace();
  let onThreads: readonly number[] = [];

  beforeAll(async () => {
    onThreads = await lossesOf(workspace, { ranks: 2, zero: 3, steps });
  });
  afterAll(() => workspace[Symbol.dispose]());

  // Level 1 is in `npm run matrix`.
  it.each([0, 2, 3])("train to the 17 digits of ranks on threads, at level %i", async (zero) => {
    const outcome = await runTiny(workspace, { ranks: 2, zero, steps, placement: "process" });
    expect(outcome.error).toBeUndefined();
    expect(outcome.losses).toEqual(onThreads);
    expect(outcome.events.find((event) => event.kind === "run.started")).toMatchObject({
      placement: "process",
    });
  });

  it.skipIf(!nativeInfo().gloo)(
    "processes compute collectives over Gloo to the digits of threads, and listen on loopback only",
    async () => {
      const split = { ranks: 2, tp: 2, steps: 4 };
      const place = { threadsPerRank: 1, warmStandby: false, placement: "process" } as const;
      await using runtime = await Runtime.spawn({ ...split, ...place });
      const losses: number[] = [];
      let ports: string[] = [];
      runtime.addSink(
        atEachStep((step, lossNats) => {
          losses[step - 1] = lossNats;
          ports = portsOf(runtime.inspect().map(({ pid }) => String(pid)));
        }),
      );
      await runtime.run(tinyJob, { data: workspace.text, cache: workspace.path("cache") });
      expect(await lossesOf(workspace, split)).toEqual(losses);
      expect(ports.length).toBeGreaterThan(0);
      expect(ports.filter((place) => !place.startsWith("tcp 0100007F:"))).toEqual([]);
    },
  );

  it("pass activations and gradients between stages as threads do, and leave a program that goes on with threads", async () => {
    const stages = { ranks: 2, pp: 2, steps: 4 };
    const inProcesses = await lossesOf(workspace, { ...stages, placement: "process" }, { accumulation: 2 });
    expect(await lossesOf(workspace, stages, { accumulation: 2 })).toEqual(inProcesses);
  });

  it.each(["SIGKILL", "SIGSEGV"] as const)(
    "are restarted when one ends by %s in mid-step, and repeat the undisturbed losses",
    async (signal) => {
      const runtime = await Runtime.spawn({
        ranks: 2,
        zero: 3,
        steps,
        threadsPerRank: 1,
        placement: "process",
      });
      const losses: number[] = [];
      const causes: unknown[] = [];
      let struck = false;
      runtime.events$.subscribe((event) => {
        if (event.kind === "step.finished") losses[event.step - 1] = event.lossNats;
        if (event.kind === "actor.failed") causes.push(event.cause.code);
        if (event.kind !== "step.finished" || event.step < 5 || struck) return;
        struck = true;
        process.kill(runtime.inspect().find(({ actor }) => actor === "rank-1")?.pid as number, signal);
      });
      await runtime.run(tinyJob, { data: workspace.text, cache: workspace.path("cache") });
      await runtime.stop();
      expect(losses).toEqual(onThreads);
      expect(causes[0]).toBe(signal);
    },
  );
});
