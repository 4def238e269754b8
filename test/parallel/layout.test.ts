import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  checkLayout,
  type Layout,
  type LayoutFacts,
  layoutProblems,
  nearestLayouts,
} from "../../src/compute/parallel/index.ts";
import { PLAIN_LAYOUT } from "../fixtures/plain-layout.ts";

/** GPT-2 small. */
const gpt2: LayoutFacts = {
  numBlocks: 12,
  dividedByTp: { heads: 12, "inner width": 3072 },
  numExperts: 0,
};

/** The message of {@link checkLayout} for a layout; empty if it works. */
function refusalOf(layout: Partial<Layout>, facts = gpt2): string {
  try {
    checkLayout(facts, { ...PLAIN_LAYOUT, ...layout });
    return "";
  } catch (error) {
    expect(error).toMatchObject({ code: "LAYOUT" });
    return (error as Error).message;
  }
}

describe("checkLayout", () => {
  it("refuses TP4 · PP4 on 4 ranks, naming the layouts of 4 ranks and the ranks that it takes", () => {
    expect(refusalOf({ ranks: 4, tp: 4, pp: 4, batchSize: 16 })).toBe(
      "[layout] expected ranks in multiples of tp 4 × pp 4 = 16, got 4 (nearest that work: pp 1; or tp 1; or tp 2, pp 2; or ranks 16)",
    );
  });

  it.each<[string, Partial<Layout>, string, string]>([
    ["heads", { ranks: 4, tp: 8 }, "expected tp to divide 12 heads, got 8", "tp 4; or tp 2, pp 2"],
    [
      "layers",
      { ranks: 16, pp: 16 },
      "expected a layer or more for each of pp 16 but the last, got 12 layers",
      "tp 2, pp 8",
    ],
    [
      "ranks",
      { ranks: 3, pp: 2, batchSize: 4 },
      "expected ranks in multiples of tp 1 × pp 2 = 2",
      "pp 3; or ranks 4; or ranks 2",
    ],
    [
      "batch",
      { ranks: 4, batchSize: 18 },
      "expected a batch in multiples of 4 data-parallel ranks × 1 micro-batches = 4, got 18",
      "batch 20; or batch 16",
    ],
    [
      "micro-batches",
      { ranks: 4, batchSize: 16, accumulation: 3 },
      "= 12, got 16",
      "accumulation 4; or batch 12; or accumulation 2; or batch 24",
    ],
    ["ZeRO level", { zero: 4 }, "expected a ZeRO level from 0 to 3, got 4", "zero 3"],
    ["chunks", { ranks: 2, pp: 2, chunks: 2 }, "expected one chunk a stage for 1f1b, got 2", "chunks 1"],
    [
      "experts",
      { ranks: 2, ep: 2, batchSize: 2 },
      "expected ep 1 for a model without experts, got 2",
      "ep 1",
    ],
    [
      "interleaved micro-batches",
      { ranks: 4, pp: 4, schedule: "interleaved", chunks: 2, accumulation: 6, batchSize: 12 },
      "expected micro-batches in multiples of pp 4 for interleaved, got 6",
      "accumulation 4",
    ],
  ])("refuses indivisible %s with the nearest that divide", (_, layout, problem, nearest) => {
    expect(refusalOf(layout)).toContain(problem);
    expect(refusalOf(layout)).toContain(`(nearest that work: ${nearest}`);
  });

  it("names every problem at once", () => {
    const refusal = refusalOf({ ranks: 4, tp: 8, pp: 16, batchSize: 4 });
    expect(refusal).toContain("expected ranks in multiples of tp 8 × pp 16 = 128, got 4");
    expect(refusal).toContain("expected tp to divide 12 heads, got 8");
    expect(refusal).toContain("expected a layer or more for each of pp 16 but the last, got 12 layers");
  });

  it("refuses counts that are none", () => {
    expect(refusalOf({ ranks: 0 })).toContain("expected ranks to be a whole number ≥ 1, got 0");
    expect(refusalOf({ tp: 1.5 })).toContain("expected tp to be a whole number ≥ 1, got 1.5");
    expect(refusalOf({ zero: Number.NaN })).toContain("expected a ZeRO level from 0 to 3, got NaN");
  });

  it("takes what divides, also layers in uneven stages and experts over data-parallel ranks", () => {
    expect(refusalOf({ ranks: 8, tp: 2, pp: 2, zero: 3, batchSize: 16, accumulation: 4 })).toBe("");
    expect(refusalOf({ ranks: 5, pp: 5, batchSize: 8, accumulation: 8 })).toBe("");
    expect(refusalOf({ ranks: 4, ep: 2, batchSize: 4 }, { ...gpt2, numExperts: 8 })).toBe("");
  });

  it("suggests only layouts that work, whatever was asked", () => {
    const count = fc.integer({ min: 0, max: 40 });
    const anyLayout = fc.record<Layout>({
      ranks: count,
      tp: count,
      pp: count,
      ep: fc.integer({ min: 1, max: 8 }),
      zero: fc.integer({ min: -1, max: 5 }),
      schedule: fc.constantFrom("gpipe", "1f1b", "interleaved"),
      chunks: fc.integer({ min: 1, max: 4 }),
      batchSize: fc.integer({ min: 1, max: 512 }),
      accumulation: count,
    });
    fc.assert(
      fc.property(anyLayout, (layout) => {
        if (layoutProblems(gpt2, layout).length === 0) return;
        const nearest = nearestLayouts(gpt2, layout);
        expect(nearest.length).toBeGreaterThan(0);
        for (const other of nearest) expect(layoutProblems(gpt2, other)).toEqual([]);
      }),
    );
  });
});
