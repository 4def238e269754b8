import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { GPT2LMHeadModel } from "../../src/library/models/index.ts";
import { clusters, largestMemory, planMemory } from "../../src/tools/planner/index.ts";
import { PLAIN_LAYOUT } from "../fixtures/plain-layout.ts";
import { gptFacts } from "../fixtures/plan-gpt.ts";

const path = new URL("../../examples/plans/gpt-13b.json", import.meta.url);
const model = new GPT2LMHeadModel(JSON.parse(readFileSync(path, "utf8")));
const facts = gptFacts(model.config);
const { memoryBytes } = clusters.v100;

/** Peak bytes of a rank of 32, with `samples` samples for each of them. */
function peakBytes(zero: number, tp: number, samples: number): number {
  const layout = { ...PLAIN_LAYOUT, ranks: 32, tp, zero, batchSize: 32 * samples };
  return largestMemory(planMemory(facts, layout, { precision: "fp16", recompute: true })).peakBytes;
}

/** Scores of all heads, of one layer: before and after dropout, its mask, and the two gradients. */
const scoreBytes = (samples: number) => 9 * samples * model.config.n_head * model.config.n_positions ** 2;

describe("BMTrain's table of a GPT of 13 billion parameters on 32 V100", () => {
  it("is of the published model", () => {
    const { n_layer, n_head, n_embd, n_positions } = model.config;
    expect({ n_layer, n_head, n_embd, n_positions }).toEqual({
      n_layer: 40,
      n_head: 128,
      n_embd: 5120,
      n_positions: 512,
    });
  });

  // By batch: 8, 16, 24, 32.
  it.each([
    { zero: 3, tp: 1, published: [true, true, true, false], differ: [32] },
    { zero: 3, tp: 4, published: [true, false, false, false], differ: [16] },
    { zero: 3, tp: 8, published: [true, false, false, false], differ: [] },
    { zero: 2, tp: 1, published: [false, false, false, false], differ: [] },
    { zero: 2, tp: 4, published: [true, false, false, false], differ: [16] },
    { zero: 2, tp: 8, published: [true, false, false, false], differ: [] },
  ])(
    "fits where it was published to, ZeRO $zero, $tp ranks of a layer, but for $differ",
    ({ zero, tp, published, differ }) => {
      const batches = [8, 16, 24, 32];
      const fits = batches.map((batch) => peakBytes(zero, tp, batch) <= memoryBytes);
      expect(batches.filter((_, index) => fits[index] !== published[index])).toEqual(differ);
      // Nothing that fitted there is refused here.
      expect(batches.every((_, index) => fits[index] || !published[index])).toBe(true);
    },
  );

  it("has one of the three that differ out of memory with scores held as Megatron-LM held them", () => {
    const peak = (zero: number, tp: number, batch: number) =>
      (peakBytes(zero, tp, batch) + scoreBytes(batch)) / 1e9;
    expect(peak(2, 4, 16)).toBeGreaterThan(32);
    expect(peak(3, 1, 32)).toBeLessThan(32);
    expect(peak(3, 4, 16)).toBeLessThan(32);
  });
});
