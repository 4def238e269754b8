import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { liveRefs } from "../../../src/compute/tensor/index.ts";
import { listCheckpoints } from "../../../src/entries/checkpoint.ts";
import { defineLoop, type RuntimeOptions, type TroupeEvent } from "../../../src/entries/index.ts";
import { stepFolder } from "../../../src/library/checkpoint/index.ts";
import { lossesOf, runTiny, tinyJob, Workspace } from "../../fixtures/run-tiny.ts";

const loopJob = new URL("../../fixtures/jobs/tiny-loop.ts", import.meta.url);
/** The same loop, which says no loss. */
const gapJob = new URL("../../fixtures/jobs/loop-without-loss.ts", import.meta.url);
const workspace = new Workspace();
afterAll(() => workspace[Symbol.dispose]());

const steps = 6;

const before = (saveAt: number) => ({ saveAt, saveBy: "all before their step" });

describe("a loop of one's own", () => {
  const layouts: readonly (readonly [string, RuntimeOptions, Readonly<Record<string, unknown>>])[] = [
    ["one rank", { ranks: 1 }, {}],
    [
      "2 ranks at level 3, evaluated, with dropout",
      { ranks: 2, zero: 3 },
      { dropout: 0.1, evaluateEvery: 3 },
    ],
    [
      "2 ranks at level 0, accumulating, recomputing",
      { ranks: 2, zero: 0, recompute: true },
      { accumulation: 2 },
    ],
    ["float16 with a loss scale, nothing clipped", { ranks: 2, zero: 2, precision: "fp16" }, { clipNorm: 0 }],
    ["2 ranks that split layers, offloaded", { ranks: 2, tp: 2, offload: { optimizer: "host" } }, {}],
  ];

  it.each(layouts)("trains as the job does, to the bit: %s", async (_, layout, config) => {
    const options = { steps, ...layout };
    const job = await runTiny(workspace, options, config);
    const outcome = await runTiny(workspace, options, config, loopJob);
    expect(outcome.error).toBeUndefined();
    expect(outcome.losses).toHaveLength(steps);
    expect(outcome.losses).toEqual(job.losses);
    const evaluated = ({ events }: typeof outcome) =>
      events.flatMap((event) => (event.kind === "evaluation.finished" ? [event.lossNats] : []));
    expect(evaluated(outcome)).toEqual(evaluated(job));
    const logged = outcome.events.flatMap((event) => (event.kind === "step.finished" ? [event.metrics] : []));
    const { dp } = { dp: (layout.ranks ?? 1) / (layout.tp ?? 1) };
    expect(logged).toEqual(
      outcome.losses.map((loss) => ({ double: expect.closeTo(2 * loss, 5), rank: (dp - 1) / 2 })),
    );
  });

  it("goes on after a rank has died, and from a checkpoint, with the undisturbed losses", async () => {
    const options = { ranks: 2, zero: 3, steps: 8 };
    const undisturbed = (await lossesOf(workspace, { ...options, steps: 14 })).slice(0, 8);
    const dir = workspace.path("loop-run");
    const config = { fault: "exit", faultAt: 5, faultOnce: workspace.path("loop-died") };
    const checkpoint = { dir, everySteps: 4 };
    const struck = await runTiny(workspace, { ...options, checkpoint }, config, loopJob);
    expect(struck.error).toBeUndefined();
    expect(struck.events.some(({ kind }) => kind === "actor.restarted")).toBe(true);
    expect(struck.losses).toEqual(undisturbed);
    const resumed = await runTiny(workspace, { ...options, resume: `${dir}/step-000004` }, {}, loopJob);
    expect(resumed.losses.slice(4)).toEqual(undisturbed.slice(4));
    expect(liveRefs()).toBe(0);
  });

  it.each([
    ["one rank after its step", { ranks: 2, zero: 3 }, { saveAt: 3 }, 3, 4],
    [
      "all ranks before their step, planned every step",
      { ranks: 2, zero: 1, accumulation: 2 },
      before(3),
      3,
      1,
    ],
    [
      "both halves of a layer, offloaded to the disk",
      { ranks: 2, tp: 2, offload: { optimizer: "nvme", dir: workspace.folder } },
      before(3),
      3,
      2,
    ],
    ["beside copies in memory", { ranks: 2, zero: 2 }, { saveAt: 4 }, 4, 4],
    ["the loop at its end", { ranks: 2, zero: 0 }, { saveBy: "all at the end" }, 12, 1000],
  ] as const)(
    "has the state at the call saved, under a name that pruning keeps: %s",
    async (name, layout, how, step, everySteps) => {
      const dir = workspace.path(`saved by ${name}`);
      const inMemoryEverySteps = name === "beside copies in memory" ? 1 : undefined;
      const checkpoint = { dir, everySteps, inMemoryEverySteps, keepLast: 1 };
      const asking = await runTiny(workspace, { ...layout, steps: 12, checkpoint }, how, loopJob);
      expect(asking.error).toBeUndefined();
      expect(asking.events.filter(({ kind }) => kind === "checkpoint.failed")).toEqual([]);
      const listed = (await listCheckpoints(dir)).map(({ step, named }) => [step, named]);
      expect(listed).toEqual(
        step === 12
          ? [[12, ["best"]]]
          : [
              [12, []],
              [step, ["best"]],
            ],
      );
      const planned = workspace.path(`planned ${name}`);
      const until = { ...layout, steps: step, checkpoint: { dir: planned, everySteps: 1000 } };
      await runTiny(workspace, until, { ...how, saveAt: -1, saveBy: "" }, loopJob);
      for (const file of ["model", "optimizer"].map((of) => `${stepFolder(step)}/${of}.safetensors`))
        expect(readFileSync(join(dir, file)).equals(readFileSync(join(planned, file)))).toBe(true);
      if (step === 12) return;
      const resumed = await runTiny(
        workspace,
        { ...layout, steps: 12, resume: `${dir}/best` },
        { saveAt: -1 },
        loopJob,
      );
      expect(resumed.losses.slice(step)).toEqual(asking.losses.slice(step));
    },
  );

  it("repeats a save that a rank's death has cut off, and refuses one without a folder or a name", async () => {
    const dir = workspace.path("save-died");
    const config = { saveAt: 5, fault: "exit", faultAt: 5, faultOnce: workspace.path("save-struck") };
    const checkpoint = { dir, everySteps: 1000 };
    const struck = await runTiny(workspace, { ranks: 2, zero: 3, steps: 9, checkpoint }, config, loopJob);
    expect(struck.error).toBeUndefined();
    const listed = (await listCheckpoints(dir)).map(({ step, named }) => [step, named]);
    expect(listed).toEqual([
      [9, []],
      [5, ["best"]],
    ]);
    const unnamed = await runTiny(
      workspace,
      { ranks: 1, steps: 3, checkpoint: { dir: `${dir}-2` } },
      { mistake: "no name" },
      loopJob,
    );
    expect(unnamed.error?.message).toContain("[rank.save] expected a name such as best");
    const { error } = await runTiny(workspace, { ranks: 1, steps: 3 }, { saveAt: 1 }, loopJob);
    expect(error).toMatchObject({
      code: "OPTION",
      message: expect.stringContaining("expected a folder to save to, got none"),
    });
  });

  it.each([
    ["its return", { endBy: "return" }, { ranks: 2, zero: 3 }, "loop-returned"],
    [
      "its return with a batch at hand",
      { endBy: "return before the step" },
      { ranks: 2, tp: 2 },
      "loop-returned",
    ],
    ["its return with stages", { endBy: "return" }, { ranks: 2, pp: 2, accumulation: 2 }, "loop-returned"],
    ["rank.stop() on all ranks", { endBy: "stop" }, { ranks: 2, zero: 1 }, "loop-stopped"],
  ] as const)(
    "ends the run in order by %s: evaluated and saved at that step, from which another run goes on",
    async (name, how, layout, endedBy) => {
      const config = { evaluateEvery: 100 };
      const undisturbed = await runTiny(workspace, { ...layout, steps: 7 }, config);
      const dir = workspace.path(name);
      // Saves of steps that are granted and not made are begun, and left out.
      const options = { ...layout, steps: 12, checkpoint: { dir, everySteps: 1 } };
      const { events, losses, error } = await runTiny(
        workspace,
        options,
        { ...config, ...how, endAt: 7 },
        loopJob,
      );
      expect(error).toBeUndefined();
      expect(losses).toEqual(undisturbed.losses);
      const of = <K extends TroupeEvent["kind"]>(kind: K, among = events) =>
        among.filter((event): event is Extract<TroupeEvent, { kind: K }> => event.kind === kind);
      expect(of("run.finished")).toMatchObject([{ steps: 7, endedBy }]);
      const measured = (among: typeof events) =>
        of("evaluation.finished", among).map(({ step, lossNats }) => [step, lossNats]);
      expect(measured(events)).toEqual(measured(undisturbed.events));
      expect(of("checkpoint.saved").at(-1)?.step).toBe(7);
      const ended = [...of("checkpoint.saved"), ...of("checkpoint.skipped"), ...of("checkpoint.failed")];
      expect(ended).toHaveLength(of("checkpoint.started").length);
      const resumed = await runTiny(workspace, { ...layout, steps: 8, resume: dir }, {}, loopJob);
      expect(resumed.events.find(({ kind }) => kind === "run.started")).toMatchObject({ firstStep: 7 });
      expect(liveRefs()).toBe(0);
    },
  );

  it("ends all ranks after one step where one of them calls rank.stop(), also when a rank dies then", async () => {
    const options = { ranks: 2, zero: 3, steps: 14 } as const;
    const undisturbed = await lossesOf(workspace, options);
    const dir = workspace.path("one-stops");
    const config = {
      ...{ endBy: "stop of the last rank", endAt: 7 },
      ...{ fault: "exit", faultAt: 7, faultOnce: workspace.path("stop-died") },
    };
    const checkpoint = { dir, everySteps: 4 };
    const { events, losses, error } = await runTiny(workspace, { ...options, checkpoint }, config, loopJob);
    expect(error).toBeUndefined();
    expect(events.some(({ kind }) => kind === "actor.restarted")).toBe(true);
    const end = events.find(({ kind }) => kind === "run.finished");
    expect(end).toMatchObject({ kind: "run.finished", endedBy: "loop-stopped", steps: losses.length });
    expect(losses.length).toBeGreaterThanOrEqual(7);
    expect(losses.length).toBeLessThan(14);
    expect(losses).toEqual(undisturbed.slice(0, losses.length));
    const saved = events.flatMap((event) => (event.kind === "checkpoint.saved" ? [event.step] : []));
    expect(saved.at(-1)).toBe(losses.length);
  });

  it("is refused by name where ranks that split layers are given different inputs", async () => {
    const { error } = await runTiny(
      workspace,
      { ranks: 2, tp: 2, steps: 3 },
      { mistake: "inputs by rank.index" },
      loopJob,
    );
    expect(error).toMatchObject({ code: "RANKS_DIFFER" });
    expect(error?.message).toContain("Take rank.axes.dp.index, which they share");
  });

  it("is refused by name where one rank returns and another goes on", async () => {
    const config = { endBy: "return of one rank", endAt: 2 };
    const { error } = await runTiny(workspace, { ranks: 2, zero: 2, steps: 9 }, config, loopJob);
    expect(error).toMatchObject({ code: "LOOP_ORDER" });
    expect(error?.message).toContain(
      "expected the loops of all ranks to return after the same step, got rank 0 after 2, rank 1 goes on",
    );
  });

  it.each([
    ["left out", { zero: 1, anomalies: { loss: "skip" } }],
    ["gone back from", { zero: 2, anomalies: { loss: "rewind" }, checkpoint: { inMemoryEverySteps: 2 } }],
  ] as const)("has the job's losses where a step that is no number is %s", async (name, options) => {
    const run = (job: URL) => {
      const fault = { fault: "nan", faultAt: 3, faultOnce: workspace.path(`${name} ${job === loopJob}`) };
      return runTiny(workspace, { ranks: 2, steps, ...options }, fault, job);
    };
    const [job, loop] = [await run(tinyJob), await run(loopJob)];
    expect(loop.error).toBeUndefined();
    const found = ({ events }: typeof loop) =>
      events.flatMap((event) =>
        event.kind === "anomaly.detected" && event.anomaly !== "straggler" ? [event.step, event.action] : [],
      );
    expect(found(loop)).toEqual([4, name === "left out" ? "skipped" : "rewound"]);
    expect(found(loop)).toEqual(found(job));
    expect(loop.losses).toEqual(job.losses);
  });

  it.each([
    ["step first", "LOOP_ORDER", "expected rank.backward before rank.step(), got none"],
    ["backward twice", "LOOP_ORDER", "expected one backward for each forward, got a second"],
    ["batches again", "LOOP_ORDER", "expected rank.step() in the turn that was left"],
    ["no step", "LOOP_ORDER", "expected rank.step() before the next batch, got none"],
    ["no backward", "LOOP_ORDER", "expected rank.backward before rank.step(), got none"],
    ["old batch", "TENSOR_DISPOSED", "disposed"],
    ["outside", "LOOP_ORDER", "expected the model to be called in rank.forward"],
  ])("is refused with one sentence: %s", async (mistake, code, sentence) => {
    const { error } = await runTiny(workspace, { ranks: 1, steps: 3 }, { mistake }, loopJob);
    expect(error).toMatchObject({ code });
    expect(error?.message).toContain(sentence);
  });

  it("knows which micro-batch of its step it is at", async () => {
    const config = { mistake: "none, micro-batches", accumulation: 3, batch: 3 };
    const { events, error } = await runTiny(workspace, { ranks: 1, steps: 2 }, config, loopJob);
    expect(error).toBeUndefined();
    const metrics = events.flatMap((event) => (event.kind === "step.finished" ? [event.metrics] : []));
    expect(metrics).toHaveLength(2);
    for (const each of metrics)
      expect(each).toMatchObject({ microBatch: expect.closeTo(1), isLast: expect.closeTo(1 / 3) });
  });

  it("is refused by type and in one sentence where it is async, or does not run to its end", async () => {
    const definition = (await import("../../fixtures/jobs/tiny.ts")).default as never;
    // @ts-expect-error: a loop returns nothing
    expect(() => defineLoop(definition, async (rank) => void rank)).toThrow(
      "[loop] expected a plain function (rank) => { … } as the loop, got an async function",
    );
    // @ts-expect-error: the same
    expect(() => defineLoop(definition, function* () {})).toThrow("got a generator function");
    for (const mistake of ["promise", "promise that goes on"]) {
      const { error, losses } = await runTiny(workspace, { ranks: 1, steps: 3 }, { mistake }, loopJob);
      expect(error).toMatchObject({ code: "JOB_INVALID", message: expect.stringContaining("got a promise") });
      expect(losses).toEqual([]);
    }
  });

  it("tells the sum of losses that have one name", async () => {
    const { events, error } = await runTiny(
      workspace,
      { ranks: 1, steps: 2 },
      { mistake: "two of one name" },
      loopJob,
    );
    expect(error).toBeUndefined();
    const steps = events.filter((event) => event.kind === "step.finished");
    expect(steps.map(({ losses }) => losses)).toEqual(steps.map(({ lossNats }) => ({ nats: lossNats })));
  });

  it("is refused before it begins where it is to be evaluated, and says no loss", async () => {
    const { error, events } = await runTiny(workspace, { ranks: 1 }, { evaluateEvery: 2 }, gapJob);
    expect(error).toMatchObject({ code: "JOB_INVALID" });
    expect(events.some((event) => event.kind === "run.started")).toBe(false);
  });

  it("is refused by name where the model is cut into stages, unless it trains by trainStep", async () => {
    const options = { ranks: 2, pp: 2, steps: 3, accumulation: 2 };
    const bare = await runTiny(workspace, options, { mistake: "bare" }, loopJob);
    expect(bare.error).toMatchObject({ code: "PIPELINE_LOOP" });
    const outcome = await runTiny(workspace, options, {}, loopJob);
    expect(outcome.error).toBeUndefined();
    expect(outcome.losses).toEqual(await lossesOf(workspace, options));
  });
});
