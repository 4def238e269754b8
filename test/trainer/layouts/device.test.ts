import { afterAll, describe, expect, it } from "vitest";
import type { RuntimeOptions } from "../../../src/entries/index.ts";
import { pretend } from "../../fixtures/devices/pretend.ts";
import { atEachStep, lossesOf, type Outcome, runTiny, Workspace } from "../../fixtures/run-tiny.ts";

const workspace = new Workspace();
afterAll(() => workspace[Symbol.dispose]());

const onDevice = { device: "sim" } as const;

describe("a run on a device", () => {
  it.each<[string, RuntimeOptions]>([
    ["on two replicas at ZeRO 3", { ranks: 2, zero: 3, steps: 4 }],
    ["in bfloat16 with chance", { ranks: 2, zero: 1, precision: "bf16", rounding: "stochastic", steps: 4 }],
    ["split by layer and stage", { ranks: 4, tp: 2, pp: 2, accumulation: 2, steps: 3 }],
    ["in processes, split by layer", { ranks: 2, tp: 2, placement: "process", steps: 2 }],
  ])("has the host's losses, to the bit, %s", async (_, options) => {
    const expected = await lossesOf(workspace, options);
    expect(expected).toHaveLength(options.steps as number);
    expect(await lossesOf(workspace, { ...options, ...onDevice })).toEqual(expected);
  });

  it("has them with its optimizer on the host, however late the device is", async () => {
    const options = { ranks: 2, offload: { optimizer: "host" }, steps: 3 } as const;
    const expected = await lossesOf(workspace, options);
    try {
      // In the first schedules of seed 1 copies are early, so a missing wait would pass unnoticed.
      for (const seed of [1, 2, 3]) {
        pretend().simSeed(seed);
        const outcome = await runTiny(workspace, { ...options, ...onDevice });
        expect([seed, outcome.error, ...outcome.losses]).toEqual([seed, undefined, ...expected]);
        const started = outcome.events.find(({ kind }) => kind === "run.started");
        expect(started).toMatchObject({ devices: ["sim:0", "sim:1"] });
      }
    } finally {
      pretend().simSeed(1);
    }
  });

  const recomputed = { ranks: 2, zero: 3, recompute: true } as const;
  // All of a block's input, 4 × 128 × 32 elements a rank, is kept in the host's memory.
  const large = { context: 128, batch: 8, layers: 4 };
  const offload = { optimizer: "host", activations: "host" } as const;

  /** How often each step of a run waits for the device, whose losses must be the host's. */
  async function readBacksOf(
    options: RuntimeOptions,
    config: Readonly<Record<string, unknown>>,
  ): Promise<number> {
    const { offload: _offload, checkpoint: _checkpoint, ...plain } = options;
    const counts: number[] = [];
    const sink = atEachStep(() => counts.push(pretend().simStatistics().readBacks));
    const outcome = await runTiny(workspace, { ...options, steps: 9, sinks: [sink], ...onDevice }, config);
    expect(outcome.error).toBeUndefined();
    expect(outcome.losses).toEqual(await lossesOf(workspace, { ...plain, steps: 9 }, config));
    // Between the second step and the last but one: neither the run's beginning nor its end.
    return (counts[7] as number) - (counts[1] as number);
  }

  it.each<[string, RuntimeOptions, Readonly<Record<string, unknown>>]>([
    ["clipped by the norm", { ranks: 2 }, {}],
    ["at ZeRO 1 in bfloat16", { ranks: 2, zero: 1, precision: "bf16" }, {}],
    ["at ZeRO 2 by Lion", { ranks: 2, zero: 2 }, { optimizer: "Lion" }],
    ["at ZeRO 3 by SGD, recomputed", recomputed, { optimizer: "SGD" }],
    ["by optimizers that clip by themselves", { ranks: 2 }, { optimizer: "clipped alone" }],
    ["split by layer", { ranks: 2, tp: 2 }, {}],
    ["each element clipped", { ranks: 2 }, { clipBy: "value", clipNorm: 1e-2 }],
    [
      "not clipped, with optimizer and activations on the host, and a copy of all state each second step",
      { ...recomputed, offload, checkpoint: { inMemoryEverySteps: 2 } },
      { ...large, clipNorm: 0 },
    ],
    ["with a loss scale", { ranks: 2, precision: "amp-fp16" }, {}],
    ["with steps that may be left out", { ranks: 2, anomalies: { loss: "skip" } }, {}],
    ["clipped by the norm, with the optimizer on the host", { ...recomputed, offload }, large],
    ["with blocks as programs", { ranks: 2, zero: 3, precision: "bf16", graph: "exact" }, {}],
  ])("blocks no thread on the device within a step: %s", async (_, options, config) => {
    expect(await readBacksOf(options, config)).toBe(0);
  });

  it("blocks none where blocks are graphs of the device, and captures all but those that draw", async () => {
    process.env.TROUPE_DEVICE_GRAPHS = "1";
    try {
      expect(await readBacksOf({ ranks: 2, zero: 3, precision: "bf16", graph: "exact" }, {})).toBe(0);
      const options = { ranks: 2, steps: 4, graph: "exact", ...onDevice } as const;
      const reasonsOf = async (dropout: number) =>
        (await runTiny(workspace, options, { dropout })).events.flatMap((event) =>
          event.kind === "block.recorded" ? [event.uncaptured] : [],
        );
      expect(new Set(await reasonsOf(0))).toEqual(new Set([undefined]));
      expect(new Set(await reasonsOf(0.1))).toEqual(new Set(["it draws random numbers"]));
    } finally {
      delete process.env.TROUPE_DEVICE_GRAPHS;
    }
  });

  it.each<[string, RuntimeOptions]>([
    ["ends with the host's sentence", {}],
    [
      "goes back to the copy in memory",
      { anomalies: { gradient: "rewind" }, checkpoint: { inMemoryEverySteps: 2 } },
    ],
  ])("%s where a gradient is not finite, though nobody waits for that", async (name, options) => {
    const train = (device: "cpu" | "sim") =>
      runTiny(
        workspace,
        { ranks: 2, zero: 3, steps: 9, device, ...options },
        { fault: "overflow", faultAt: 4, faultOnce: workspace.path(`${name} on ${device}`) },
      );
    const [host, device] = [await train("cpu"), await train("sim")];
    expect(device.error?.message).toBe(host.error?.message);
    expect(device.losses).toEqual(host.losses);
    // But for stragglers, which a busy machine may make of any rank.
    const found = ({ events }: Outcome) =>
      events.flatMap((event): (string | number)[][] => {
        if (event.kind === "run.restored") return [[event.step, event.from]];
        if (event.kind !== "anomaly.detected" || event.anomaly === "straggler") return [];
        return [[event.step, event.anomaly, event.action]];
      });
    expect(found(device)).toEqual(found(host));
    expect(found(device)[0]?.slice(0, 2)).toEqual([5, "gradient-not-finite"]);
  });

  it("goes on from a checkpoint of the host, and the host from one of the device", async () => {
    const options = { ranks: 2, zero: 3 } as const;
    const expected = await lossesOf(workspace, { ...options, steps: 4 });
    for (const [name, first, second] of [
      ["down", {}, onDevice],
      ["up", onDevice, {}],
    ] as const) {
      const dir = workspace.path(name);
      await lossesOf(workspace, { ...options, ...first, steps: 2, checkpoint: { dir } });
      const losses = await lossesOf(workspace, { ...options, ...second, steps: 4, resume: dir });
      expect(losses.slice(2)).toEqual(expected.slice(2));
    }
  });

  it("is refused where there is none, before anything is spawned", async () => {
    await expect(runTiny(workspace, { device: "sim:9" })).rejects.toMatchObject({
      code: "DEVICE_UNAVAILABLE",
    });
  });
});
