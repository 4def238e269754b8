import { describe, expect, it } from "vitest";
import type { Layout } from "../../src/compute/parallel/index.ts";
import { type Cluster, clusters, type Simulation, simulate } from "../../src/tools/planner/index.ts";
import { runWorld } from "../../src/tools/planner/simulation/simulate.ts";
import {
  SimulatedWorld,
  type SimulationOptions,
} from "../../src/tools/planner/simulation/simulated-world.ts";
import { PLAIN_LAYOUT } from "../fixtures/plain-layout.ts";
import { gptFacts } from "../fixtures/plan-gpt.ts";

/** A GPT whose head is small beside its layers, so that stages are even. */
const facts = gptFacts({ vocab_size: 8, n_layer: 16, n_head: 8, n_embd: 1024, n_positions: 128 });

/** Machines on which only computing takes time. */
const free = { bytesPerSecond: Number.POSITIVE_INFINITY, latencyS: 0 };
const onlyComputing: Cluster = {
  ...clusters.h100,
  memoryBytesPerSecond: Number.POSITIVE_INFINITY,
  withinNode: free,
  betweenNodes: free,
};

const run = (layout: Partial<Layout>, options: Partial<SimulationOptions> = {}): Simulation =>
  simulate(
    facts,
    { ...PLAIN_LAYOUT, ...layout },
    { precision: "bf16", cluster: onlyComputing, prefetchBytes: Number.POSITIVE_INFINITY, ...options },
  );

describe("simulate", () => {
  it("takes as long as the computation where nothing else takes time", () => {
    for (const zero of [0, 1, 2, 3]) {
      const { stepS, computeS, exposedS } = run({ ranks: 8, zero, batchSize: 16, accumulation: 2 });
      expect(stepS).toBeCloseTo(computeS, 9);
      expect(exposedS).toBe(0);
    }
  });

  it.each<[string, Partial<Layout>, number]>([
    ["1f1b", { pp: 4, accumulation: 8, batchSize: 8 }, 3 / 8],
    ["gpipe", { pp: 4, accumulation: 8, batchSize: 8, schedule: "gpipe" }, 3 / 8],
    ["interleaved", { pp: 4, accumulation: 8, batchSize: 8, schedule: "interleaved", chunks: 2 }, 3 / 16],
    [
      "interleaved in four",
      { pp: 4, accumulation: 8, batchSize: 8, schedule: "interleaved", chunks: 4 },
      3 / 32,
    ],
  ])("stands idle for the bubble of the formula under %s", (_, layout, bubble) => {
    const { stepS, computeS } = run({ ranks: 4, ...layout });
    // The head on the last stage is a small part of the work, and delays the others by that.
    expect(stepS / computeS - 1).toBeCloseTo(bubble, 2);
  });

  it("hides gathers and reductions behind the computation: the longer of both, not their sum", () => {
    const layout = { ranks: 4, zero: 3, batchSize: 32 };
    const { computeS } = run(layout);
    // Of 17 blocks, each is gathered twice but the last and the root, and reduced once.
    const numCollectives = 17 * 3 - 2;
    for (const share of [0.25, 0.5, 1, 2, 4]) {
      const delayPerCollectiveS = (share * computeS) / numCollectives;
      const options = { delayPerCollectiveS, clip: false, prefetchBytes: 2 ** 26, numSteps: 8 };
      const { stepS, communicationS } = run(layout, options);
      expect(communicationS / computeS).toBeCloseTo(share, 6);
      // Exposed in any case: the root, which is reduced last and gathered first, and the queue around it.
      expect(stepS).toBeLessThan(Math.max(computeS, communicationS) + 8 * delayPerCollectiveS);
      expect(stepS).toBeGreaterThan(0.999 * Math.max(computeS, communicationS));
    }
  });

  it("hides updates under the next forward when nothing is clipped, and waits for the norm when it is", () => {
    const { computeS } = run({ ranks: 4, zero: 3, batchSize: 32 });
    const delayPerUpdateS = (0.6 * computeS) / 17;
    const free = run({ ranks: 4, zero: 3, batchSize: 32 }, { delayPerUpdateS, clip: false });
    expect(free.stepS).toBeLessThan(computeS + 3 * delayPerUpdateS);
    const clipped = run({ ranks: 4, zero: 3, batchSize: 32 }, { delayPerUpdateS });
    expect(clipped.stepS).toBeGreaterThan(free.stepS);
    expect(clipped.stepS).toBeLessThan(computeS + free.updateS);
  });

  it("waits for a straggler, by as much as it is slow", () => {
    const layout = { ranks: 16, tp: 2, zero: 1, batchSize: 16 };
    const even = run(layout);
    const slow = run(layout, { straggler: { rank: 5, factor: 1.5 } });
    expect(slow.stepS / even.stepS).toBeCloseTo(1.5, 6);
  });

  it("pays for the links between nodes where a group crosses them", () => {
    const options = { cluster: clusters.v100 };
    const layout = { ranks: 8, tp: 8, batchSize: 8 };
    const within = run(layout, options);
    const across = run(layout, { cluster: { ...clusters.v100, ranksPerNode: 4 } });
    expect(across.tensorParallelS).toBeGreaterThan(4 * within.tensorParallelS);
  });

  it("keeps the timeline of the ranks it is asked for", () => {
    const { timeline } = run({ ranks: 4, zero: 3, batchSize: 4 }, { timelineOf: [2] });
    expect(new Set(timeline.map(({ rank }) => rank))).toEqual(new Set([2]));
    const ofStep = timeline.filter(({ step, lane }) => step === 1 && lane === "compute");
    const blocks = Array.from({ length: 16 }, (_, index) => index + 1);
    expect(ofStep.map(({ name }) => name)).toEqual([
      "forward 0",
      ...blocks.map((block) => `forward ${block}`),
      "forward 0",
      "backward 0",
      ...blocks.toReversed().map((block) => `backward ${block}`),
      "backward 0",
    ]);
    for (const { beginS, endS } of timeline) expect(endS).toBeGreaterThanOrEqual(beginS);
  });

  it("refuses a layout that does not work", () => {
    expect(() => run({ ranks: 4, tp: 4, pp: 4 })).toThrow(expect.objectContaining({ code: "LAYOUT" }));
  });

  it("names who waits for what when a message is never sent", () => {
    const layout = { ...PLAIN_LAYOUT, ranks: 2, pp: 2, batchSize: 2, accumulation: 2 };
    const world = new SimulatedWorld(facts, layout, { precision: "bf16", cluster: onlyComputing });
    const program = world.ranks[0]?.plan.program[1] as unknown as { kind: string }[];
    program.splice(
      program.findIndex(({ kind }) => kind === "send"),
      1,
    );
    expect(() => runWorld(world)).toThrow(
      "2 that wait for ever, rank 0 for backward of micro-batch 0 at place 0; rank 1 for forward of micro-batch 0 at place 1",
    );
  });

  it.each<[string, string, string]>([
    ["a gather's end is not awaited", "await", "to be gathered for step 1 before rank 0 computes with it"],
    ["a backward is left out", "compute", "to be complete before rank 0 reduces it"],
  ])("objects when %s", (_, kind, complaint) => {
    const layout = { ...PLAIN_LAYOUT, ranks: 2, zero: 3, batchSize: 2 };
    const slow = { ...clusters.v100, ranksPerNode: 1 };
    const world = new SimulatedWorld(facts, layout, { precision: "bf16", cluster: slow });
    const program = world.ranks[0]?.plan.program[1] as unknown as { kind: string; block?: number }[];
    const index = program.findLastIndex((operation) => operation.kind === kind && operation.block === 3);
    program.splice(index, 1);
    expect(() => runWorld(world)).toThrow(complaint);
  });
});

describe("simulate at scale", () => {
  const gpt = (layers: number, width: number, heads: number, context: number) =>
    gptFacts({
      vocab_size: 50304,
      n_layer: layers,
      n_head: heads,
      n_embd: width,
      n_positions: context,
    });

  it("runs GPT-13B on 32 ranks in order, ZeRO-3 hidden behind the computation", () => {
    const layout = { ...PLAIN_LAYOUT, ranks: 32, zero: 3, batchSize: 256 };
    const { stepS, computeS, communicationS } = simulate(gpt(40, 5120, 40, 512), layout, {
      precision: "fp16",
      cluster: clusters.v100,
      recompute: true,
    });
    expect(communicationS).toBeGreaterThan(0.5 * computeS);
    expect(stepS).toBeLessThan(computeS + 0.25 * communicationS);
  });

  it("runs 175B on 1,024 ranks in order, with the pipeline's bubble", () => {
    const layout = { ...PLAIN_LAYOUT, ranks: 1024, tp: 8, pp: 16, zero: 1, batchSize: 256, accumulation: 32 };
    const options = { precision: "bf16", cluster: clusters.a100, recompute: true } as const;
    const { stepS, computeS, tensorParallelS } = simulate(gpt(96, 12288, 96, 2048), layout, options);
    const busyS = computeS + tensorParallelS;
    expect(stepS / busyS - 1).toBeGreaterThan(15 / 32);
    // Messages between stages, the head's imbalance, and the update come on top.
    expect(stepS / busyS - 1).toBeLessThan(15 / 32 + 0.3);
  });
});
