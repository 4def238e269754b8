import { describe, expect, it } from "vitest";
import {
  type ByteScheme,
  numParametersOf,
  type StageShare,
  shareOfStages,
  stateBytes,
} from "../../src/tools/planner/index.ts";
import { PLAIN_LAYOUT } from "../fixtures/plain-layout.ts";
import { gptFacts } from "../fixtures/plan-gpt.ts";

const MEBIBYTE = 2 ** 20;

/** Megatron's GPT of 1.3 billion parameters; its vocabulary is padded to 128 tokens for each of t ranks. */
function modelFor(tp: number) {
  const multiple = 128 * tp;
  return gptFacts({
    vocab_size: Math.ceil(50257 / multiple) * multiple,
    n_positions: 1024,
    n_embd: 2048,
    n_layer: 24,
    n_head: 32,
  });
}

/** The stage whose rank holds most, of four ranks with a batch of four. */
function largestShare(tp: number, pp: number): StageShare {
  const layout = { ...PLAIN_LAYOUT, ranks: 4, tp, pp, batchSize: 4 };
  const shares = shareOfStages(modelFor(tp), layout);
  return shares.reduce((most, share) => (numParametersOf(share) > numParametersOf(most) ? share : most));
}

/**
 * Megatron's fp16 in its optimizer step, when memory peaks: fp16 parameters (2 bytes) and gradients (2), float32
 * gradients (4), masters (4) and Adam's moments (8).
 */
const megatron: ByteScheme = {
  compute: 2,
  gradient: 2,
  reducedGradient: 4,
  ownGradient: 4,
  master: 4,
  optimizer: 8,
};

/**
 * The fp16 gradients that the optimizer step keeps while it widens them, in bytes: all of them, where data
 * parallelism keeps them in buckets of its own; where the model itself is split they are freed one by one, but for the
 * tied embedding's, which the all-reduce between first and last stage holds.
 */
function heldGradientBytes(share: StageShare, tp: number, pp: number): number {
  if (tp * pp === 1) return megatron.gradient * numParametersOf(share);
  const embedding = share.layouts[0]?.parameters.find(({ name }) => name.endsWith("wte.weight"));
  return pp === 1 ? 0 : megatron.gradient * (embedding?.numel ?? 0);
}

function peakMebibytes(tp: number, pp: number): number {
  const share = largestShare(tp, pp);
  const { parameters, master, optimizer, gradients } = stateBytes(share.layouts, megatron, "device");
  return (parameters + master + optimizer + gradients + heldGradientBytes(share, tp, pp)) / MEBIBYTE;
}

describe("Rapidformer's table of 3D parallelism, from first principles", () => {
  it.each([
    [1, 1, 1_313_722_368],
    [2, 1, 658_190_336],
    [4, 1, 330_424_320],
    [1, 2, 709_419_008],
    [1, 4, 407_269_376],
    [2, 2, 355_962_880],
  ])("counts the parameters of the largest rank at TP%i · PP%i: %i", (tp, pp, numParameters) => {
    expect(numParametersOf(largestShare(tp, pp))).toBe(numParameters);
  });

  it.each([
    [1, 1, 25061],
    [2, 1, 11300],
    [4, 1, 5673],
  ])("gives the peak of TP%i · PP%i, %i MB, within a thousandth", (tp, pp, published) => {
    expect(Math.abs(peakMebibytes(tp, pp) / published - 1)).toBeLessThan(0.001);
  });

  it.each([
    [1, 2, 12375],
    [2, 2, 6211],
  ])("gives the peak of TP%i · PP%i, %i MB, within 2 in 100", (tp, pp, published) => {
    expect(Math.abs(peakMebibytes(tp, pp) / published - 1)).toBeLessThan(0.02);
  });
});
