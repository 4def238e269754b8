import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Runtime, type RuntimeOptions } from "../../../src/entries/index.ts";
import { nativeInfo } from "../../../src/entries/tensor.ts";
import { lossesOf, type Outcome, runTiny, tinyJob, Workspace } from "../../fixtures/run-tiny.ts";

const steps = 6;
const gloo = { placement: "process", carrier: "gloo" } as const;

/** Processes that are started from here have no memory in common for tensors: one that makes some fails. */
const REFUSED = "TROUPE_REFUSE_SHARED_MEMORY";

describe.skipIf(!nativeInfo().gloo)("ranks that share no memory", () => {
  const workspace = new Workspace();
  beforeAll(() => {
    process.env[REFUSED] = "1";
  });
  afterAll(() => {
    delete process.env[REFUSED];
    workspace[Symbol.dispose]();
  });

  // Every other pair is in `npm run matrix -- gloo`.
  const jobs: readonly (readonly [string, RuntimeOptions, Readonly<Record<string, unknown>>])[] = [
    [
      "two replicas at ZeRO 1, in bf16 and clipped by the norm",
      { ranks: 2, zero: 1, precision: "bf16" },
      { clipNorm: 0.1 },
    ],
    [
      "two replicas whose updates ask all ranks for sums, half of them offloaded",
      { ranks: 2, zero: 3, offload: { optimizer: "host", ratio: 0.5 } },
      { optimizer: "Adafactor" },
    ],
    ["two stages of two chunks", { ranks: 2, pp: 2, chunks: 2 }, { accumulation: 2, layers: 4 }],
    ["a layer in two and two replicas at ZeRO 0", { ranks: 4, tp: 2, zero: 0 }, {}],
  ];

  it.each(jobs)("train %s to the 17 digits of threads", async (_, options, config) => {
    const outcome = await runTiny(workspace, { ...options, ...gloo, steps }, config);
    expect(outcome.error).toBeUndefined();
    expect(outcome.losses).toEqual(await lossesOf(workspace, { ...options, steps }, config));
  });

  it("evaluate, save, and go on from what threads have saved", async () => {
    const spread = { ranks: 4, pp: 2, zero: 3 } as const;
    const config = { accumulation: 2, evaluateEvery: 2 };
    const directory = workspace.path("of-threads");
    const whole = await runTiny(
      workspace,
      { ...spread, steps, checkpoint: { dir: directory, everySteps: 4 } },
      config,
    );
    const again = { ...spread, ...gloo, steps };
    const apart = workspace.path("apart");
    const outcome = await runTiny(workspace, { ...again, checkpoint: { dir: apart, everySteps: 4 } }, config);
    expect(outcome.error).toBeUndefined();
    expect(outcome.losses).toEqual(whole.losses);
    expect(evaluated(outcome)).toEqual(evaluated(whole));
    for (const resume of [directory, apart]) {
      const resumed = await runTiny(workspace, { ...again, resume: join(resume, "step-000004") }, config);
      expect(resumed.error).toBeUndefined();
      expect(resumed.losses.slice(4)).toEqual(whole.losses.slice(4));
    }
  });

  it.each([
    ["replica", { ranks: 2, zero: 3 }, {}],
    ["stage", { ranks: 2, pp: 2 }, { accumulation: 2 }],
  ] as const)(
    "notice a %s that is killed in mid-step, start again and repeat the undisturbed losses",
    async (_, spread, config) => {
      const causes: unknown[] = [];
      let struck = false;
      const options = { ...spread, steps: 12 };
      await using runtime = await Runtime.spawn({
        ...options,
        ...gloo,
        threadsPerRank: 1,
        warmStandby: false,
      });
      const losses: number[] = [];
      runtime.events$.subscribe((event) => {
        if (event.kind === "step.finished") losses[event.step - 1] = event.lossNats;
        if (event.kind === "actor.failed") causes.push(event.cause.code);
        if (event.kind !== "step.finished" || event.step < 5 || struck) return;
        struck = true;
        process.kill(runtime.inspect().find(({ actor }) => actor === "rank-1")?.pid as number, "SIGKILL");
      });
      await runtime.run(tinyJob, { data: workspace.text, cache: workspace.path("cache"), ...config });
      expect(causes[0]).toBe("SIGKILL");
      expect(losses).toEqual(await lossesOf(workspace, options, config));
    },
  );

  it("are refused aloud any tensor in memory that processes share, which the carrier of one host makes", async () => {
    const { error } = await runTiny(workspace, { ranks: 2, placement: "process", steps });
    expect(error).toMatchObject({ code: "SHARED_MEMORY_REFUSED" });
  });

  it("are refused as threads, and with parameters in files", async () => {
    await expect(Runtime.spawn({ carrier: "gloo" })).rejects.toMatchObject({ code: "OPTION" });
    const offload = { parameters: "nvme", dir: workspace.folder } as const;
    await expect(Runtime.spawn({ ...gloo, zero: 3, offload })).rejects.toMatchObject({ code: "OPTION" });
  });
});

/** Losses of what was held out, by step. */
function evaluated({ events }: Outcome): (readonly [number, number])[] {
  return events.flatMap((event) =>
    event.kind === "evaluation.finished" ? [[event.step, event.lossNats] as const] : [],
  );
}
