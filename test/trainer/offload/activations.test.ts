import { afterAll, describe, expect, it } from "vitest";
import { memory, resetPeakMemory } from "../../../src/compute/tensor/index.ts";
import type { RuntimeOptions } from "../../../src/entries/index.ts";
import { atEachStep, lossesOf, runTiny, Workspace } from "../../fixtures/run-tiny.ts";

const workspace = new Workspace();
afterAll(() => workspace[Symbol.dispose]());

const recomputed = { ranks: 2, zero: 3, steps: 5, recompute: true } as const;
const offload = { activations: "nvme", dir: workspace.folder } as const;
/** A block's input has 4 × 128 × 32 elements a rank. */
const config = { context: 128, batch: 8, layers: 4 };

describe("offloaded activations", () => {
  it.each([
    ["plainly", {}, {}],
    ["through micro-batches", {}, { accumulation: 2, batch: 16 }],
    ["through stages, several micro-batches under way", { pp: 2, accumulation: 2 }, { batch: 8 }],
    ["beside an optimizer in a file", { offload: { ...offload, optimizer: "nvme" } }, {}],
  ] as const)("give the bits of those that stay: %s", async (_how, options, more) => {
    const settings = { ...config, ...more };
    const stay: RuntimeOptions = { ...recomputed, ...options };
    const { offload: _offload, ...resident } = stay;
    expect(await lossesOf(workspace, { ...recomputed, offload, ...options }, settings)).toEqual(
      await lossesOf(workspace, resident, settings),
    );
  });

  it("leave the peak: a step's holds a few blocks' inputs in place of all", async () => {
    const deep = { context: 256, batch: 16, layers: 12, width: 64 };
    const inputBytes = 16 * 256 * 64 * 4;
    const peakOf = async (options: RuntimeOptions) => {
      let peak = 0;
      const sink = atEachStep((step) => {
        if (step === 2) resetPeakMemory();
        if (step === 4) peak = memory().peakBytes;
      });
      const outcome = await runTiny(workspace, { ...options, sinks: [sink] }, deep);
      expect(outcome.error).toBeUndefined();
      return peak;
    };
    const one = { ...recomputed, ranks: 1 };
    const saved = (await peakOf(one)) - (await peakOf({ ...one, offload }));
    // Three of twelve inputs are replaced by buffers, and two or three are in memory around the peak.
    expect(saved).toBeGreaterThan(4 * inputBytes);
  });
});
