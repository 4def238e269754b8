import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openCheckpoint } from "../../../src/entries/checkpoint.ts";
import type { EventOf, RuntimeOptions } from "../../../src/entries/index.ts";
import { type Outcome, runTiny, Workspace } from "../../fixtures/run-tiny.ts";

type Config = Readonly<Record<string, unknown>>;

const ranks = 2;

function ofKind<Kind extends EventOf<"anomaly.detected" | "run.restored" | "step.finished">["kind"]>(
  { events }: Outcome,
  kind: Kind,
): EventOf<Kind>[] {
  return events.filter((event): event is EventOf<Kind> => event.kind === kind);
}

/** But for stragglers, which a busy machine may make of any rank. */
const anomaliesIn = (outcome: Outcome) =>
  ofKind(outcome, "anomaly.detected")
    .filter(({ anomaly }) => anomaly !== "straggler")
    .map(({ step, anomaly, action }) => ({ step, anomaly, action }));

const restoredIn = (outcome: Outcome) =>
  ofKind(outcome, "run.restored").map(({ step, from }) => ({ step, from }));

describe("a step that is left out", () => {
  const workspace = new Workspace();
  const steps = 7;
  /** Rank 1 goes wrong in the fifth step. */
  const nan = { fault: "nan", faultAt: 4 };
  const anomalies = { loss: "skip", gradient: "skip" } as const;
  let outcome: Outcome;

  const train = (options: RuntimeOptions, config: Config = nan) =>
    runTiny(workspace, { ranks, steps, anomalies, ...options }, config);

  beforeAll(async () => {
    outcome = await train({ zero: 3 });
  });
  afterAll(() => workspace[Symbol.dispose]());

  it("an anomaly is reported with its rank, changes nothing, and does not advance the schedule", () => {
    expect(outcome.error).toBeUndefined();
    expect(
      ofKind(outcome, "anomaly.detected").filter(({ anomaly }) => anomaly !== "straggler"),
    ).toMatchObject([
      { step: 5, anomaly: "loss-not-finite", value: Number.NaN, rank: 1, policy: "skip", action: "skipped" },
    ]);
    const made = ofKind(outcome, "step.finished");
    expect(made.map(({ skipped }) => skipped)).toEqual([false, false, false, false, true, false, false]);
    expect(made[5]?.learningRate).toBe(made[4]?.learningRate);
    expect(outcome.losses.map(Number.isFinite)).toEqual([true, true, true, true, false, true, true]);
  });

  it.each<[RuntimeOptions, Config]>([
    [{ zero: 0 }, nan],
    [{ zero: 2, placement: "process" }, nan],
    [
      { ranks: 1, zero: 1, accumulation: 2 },
      { ...nan, faultRank: 0, faultAt: 9 },
    ],
    [{ zero: 3, offload: { optimizer: "host" } }, nan],
  ])("gives the same losses to the bit with %o", async (options, config) => {
    const other = await train(options, config);
    expect(other.error).toBeUndefined();
    expect(other.losses).toEqual(outcome.losses);
  });

  it("is left out by all parts of a model, and where nothing else makes updates wait", async () => {
    const config = { fault: "overflow", faultRank: 0, faultAt: 4, clipNorm: 0 };
    const [whole, staged] = [
      await train({ ranks: 1, zero: 0, accumulation: 2 }, config),
      // Cutting the model into stages takes a loss of its own.
      await train({ ranks: 2, pp: 2, zero: 1, accumulation: 2 }, { ...config, faultRank: 1, faultAt: 5 }),
    ];
    for (const run of [whole, staged]) {
      expect(run.error).toBeUndefined();
      expect(anomaliesIn(run)).toEqual([{ step: 3, anomaly: "gradient-not-finite", action: "skipped" }]);
      expect(run.losses.every(Number.isFinite)).toBe(true);
    }
    for (const [step, loss] of staged.losses.entries()) expect(loss).toBeCloseTo(whole.losses[step] ?? 0, 5);
  });
});

describe("a run that goes back", () => {
  const workspace = new Workspace();
  const steps = 24;
  /** In the nineteenth step, when it is known how losses vary. */
  const faultAt = 18;
  afterAll(() => workspace[Symbol.dispose]());

  const train = (name: string, options: RuntimeOptions, config: Config) =>
    runTiny(
      workspace,
      { ranks, steps, zero: 3, checkpoint: { inMemoryEverySteps: 4 }, ...options },
      { faultAt, faultOnce: workspace.path(name), ...config },
    );

  describe("from a poisoned batch", () => {
    const anomalies = { spike: "rewind" } as const;
    const poison = { fault: "poison" };
    const dir = workspace.path("saved");
    let outcome: Outcome;

    beforeAll(async () => {
      outcome = await train("first", { anomalies, checkpoint: { inMemoryEverySteps: 4, dir } }, poison);
    });

    it("a rewind from a poisoned batch takes the copy in memory, and goes on with the next batch", async () => {
      expect(outcome.error).toBeUndefined();
      expect(anomaliesIn(outcome)).toEqual([{ step: 19, anomaly: "loss-spike", action: "rewound" }]);
      expect(restoredIn(outcome)).toEqual([{ step: 16, from: "memory" }]);
      expect(ofKind(outcome, "step.finished").map(({ step }) => step)).toEqual([
        ...Array.from({ length: 18 }, (_, index) => index + 1),
        ...Array.from({ length: 8 }, (_, index) => index + 17),
      ]);
      await using checkpoint = await openCheckpoint(join(dir, "step-000024"));
      expect(checkpoint.state.samplesConsumed).toBe((24 + 3) * 4);
      expect(checkpoint.state.recentLosses).toEqual(outcome.losses);
    });

    it("a rewound run has the same losses before the rewind, and others after it", async () => {
      const { losses } = await runTiny(workspace, { ranks, steps, zero: 3 });
      expect(outcome.losses.slice(0, 16)).toEqual(losses.slice(0, 16));
      for (const [step, loss] of losses.slice(16).entries()) expect(outcome.losses[16 + step]).not.toBe(loss);
    });

    it.each<[string, RuntimeOptions]>([
      ["level 0", { zero: 0 }],
      ["processes", { placement: "process", zero: 2 }],
    ])("comes to the same losses to the bit: %s", async (name, options) => {
      const other = await train(name, { anomalies, ...options }, poison);
      expect(other.error).toBeUndefined();
      expect(other.losses).toEqual(outcome.losses);
    });
  });

  describe("from a weight that went wrong", () => {
    const anomalies = { loss: "rewind", gradient: "rewind", spike: "rewind" } as const;
    // One weight moves by 1e30 in the update after the nineteenth step; the twentieth shows it.
    const flip = { fault: "flip", optimizer: "plain SGD", clipNorm: 0 };

    it("gets rid of it", async () => {
      const outcome = await train("before", { anomalies }, flip);
      expect(outcome.error).toBeUndefined();
      expect(anomaliesIn(outcome)).toMatchObject([{ step: 20, action: "rewound" }]);
      expect(restoredIn(outcome)).toEqual([{ step: 16, from: "memory" }]);
      expect(outcome.losses.every(Number.isFinite)).toBe(true);
    });

    it("a rewind from a bad weight goes back before copies that contain it", async () => {
      const outcome = await train("copied", { anomalies, checkpoint: { inMemoryEverySteps: 1 } }, flip);
      expect(outcome.error).toBeUndefined();
      expect(anomaliesIn(outcome)).toMatchObject([
        { step: 20, action: "rewound" },
        { step: 20, action: "rewound" },
      ]);
      expect(restoredIn(outcome)).toEqual([
        { step: 19, from: "memory" },
        { step: 0, from: "beginning" },
      ]);
      expect(outcome.losses.every(Number.isFinite)).toBe(true);
    });
  });

  it("fails with the anomaly where going back does not help", async () => {
    const anomalies = { loss: "rewind" } as const;
    const always = { fault: "nan", faultAt: -1, faultOnce: "" };
    const { error } = await train("never", { anomalies, steps: 3 }, always);
    expect(error).toMatchObject({ code: "LOSS_NOT_FINITE" });
  });
});

describe("a run whose options say to stop, or only to report", () => {
  const workspace = new Workspace();
  afterAll(() => workspace[Symbol.dispose]());

  it("a run ends at a loss of NaN with all good steps saved, and none after it", async () => {
    const dir = workspace.path("stopped");
    const checkpoint = { dir, everySteps: 1 };
    const outcome = await runTiny(workspace, { ranks, steps: 8, checkpoint }, { fault: "nan", faultAt: 5 });
    expect(outcome.error).toMatchObject({ code: "LOSS_NOT_FINITE", fields: { step: 5, rank: 1 } });
    expect(anomaliesIn(outcome)).toEqual([{ step: 6, anomaly: "loss-not-finite", action: "stopped" }]);
    expect(outcome.losses).toHaveLength(5);
    await using newest = await openCheckpoint(dir);
    expect(newest.state.step).toBe(5);
  });

  it("reports a spike on its step and trains on, unless the options say otherwise", async () => {
    const poison = { fault: "poison", faultAt: 18 };
    const outcome = await runTiny(workspace, { ranks, steps: 20 }, poison);
    expect(outcome.error).toBeUndefined();
    expect(anomaliesIn(outcome)).toEqual([{ step: 19, anomaly: "loss-spike", action: "told" }]);
    const stopped = await runTiny(workspace, { ranks, steps: 20, anomalies: { spike: "stop" } }, poison);
    expect(stopped.error).toMatchObject({ code: "LOSS_SPIKE" });
    expect(stopped.losses).toEqual(outcome.losses.slice(0, 18));
  });

  it("reports once a rank that is slow in step after step", async () => {
    const slow = { fault: "slow", faultAt: -1 };
    const anomalies = { stragglerSteps: 2, stragglerFactor: 1.5 };
    const outcome = await runTiny(workspace, { ranks, steps: 5, anomalies }, slow);
    expect(outcome.error).toBeUndefined();
    expect(ofKind(outcome, "anomaly.detected")).toMatchObject([
      { anomaly: "straggler", rank: 1, policy: "tell", action: "told" },
    ]);
    const stop = { ...anomalies, straggler: "stop" } as const;
    const stopped = await runTiny(workspace, { ranks, steps: 5, anomalies: stop }, slow);
    expect(stopped.error).toMatchObject({ code: "STRAGGLER", fields: { rank: 1 } });
  });

  it.each<[NonNullable<RuntimeOptions["anomalies"]>, string]>([
    [{ loss: "tell" as "stop" }, "anomalies.loss to be stop or skip or rewind"],
    [{ straggler: "skip" as "stop" }, "anomalies.straggler to be tell or stop"],
    [{ spikeDeviations: 0 }, "anomalies.spikeDeviations to be a number > 0"],
    [{ stragglerFactor: 1 }, "anomalies.stragglerFactor to be a number > 1"],
    [{ spikes: "stop" } as object, "an option of anomalies, got spikes (did you mean spike?)"],
    [{ spike: "rewind" }, "anomalies to be rewind only with checkpoints"],
  ])("is refused %o", async (anomalies, message) => {
    const { error } = await runTiny(workspace, { anomalies }).catch((error: Error) => ({ error }));
    expect(error?.message).toContain(message);
    expect(error).toMatchObject({ code: "OPTION" });
  });
});
