import { afterAll, describe, expect, test } from "vitest";
import type { Training } from "../../fixtures/tensor-parallel/gpt2.ts";
import { wholeOf } from "../../fixtures/tensor-parallel/whole.ts";
import { expectNear, Ranks, relativeError } from "./ranks.ts";

const ranks = new Ranks<typeof import("../../fixtures/tensor-parallel/gpt2.ts")>(
  new URL("../../fixtures/tensor-parallel/gpt2.ts", import.meta.url),
);
afterAll(() => ranks.stop());

const noDropout = { resid_pdrop: 0, embd_pdrop: 0, attn_pdrop: 0 };
const dropout = { resid_pdrop: 0.1, embd_pdrop: 0.1, attn_pdrop: 0.1 };
const config = { vocab_size: 61, n_positions: 16, n_embd: 32, n_layer: 2, n_head: 4, ...noDropout };
const training: Training = { config, sequence: false, steps: 5, batch: 3, length: 8 };

// float32: sums over ranks are made in another order, and matrix products of other widths are blocked otherwise.
const TOLERANCE = 1e-5;

describe("GPT-2 over tensor-parallel ranks is GPT-2 on one device", () => {
  const cases = [2, 4].flatMap((size) =>
    [false, true].flatMap((sequence) => {
      const title = `${size} ranks${sequence ? ", sequence parallel" : ""}`;
      return [
        { title, size, sequence, given: {} },
        ...(sequence ? [{ title: `${title}, in chunks`, size, sequence, given: {}, chunks: 2 }] : []),
        { title: `${title}, with dropout`, size, sequence, given: dropout },
        { title: `${title}, with experts`, size, sequence, given: {}, numExperts: 4 },
        { title: `${title}, output layer untied`, size, sequence, given: { tie_word_embeddings: false } },
      ];
    }),
  );

  test.each(cases)("$title", async ({ size, sequence, given, chunks = 1, numExperts = 0 }) => {
    const wanted = { ...training, config: { ...config, ...given }, sequence, chunks, numExperts };
    const [one] = await ranks.run("train", 1, wanted);
    const all = await ranks.run("train", size, wanted);
    if (one === undefined) throw new Error("no answer");
    for (const { losses, logits } of all) {
      losses.forEach(
        (loss, step) => void expect(Math.abs(loss / (one.losses[step] ?? 0) - 1)).toBeLessThan(TOLERANCE),
      );
      expect(relativeError(logits, one.logits)).toBeLessThan(2 * TOLERANCE);
    }
    expectNear(wholeOf(all.map((rank) => rank.gradients)), wholeOf([one.gradients]), TOLERANCE);
    // AdamW divides a gradient by its own size: where that was small in a step, the error has grown by as much.
    expectNear(wholeOf(all.map((rank) => rank.parameters)), wholeOf([one.parameters]), 2 * TOLERANCE);
  });

  const narrow = [
    { title: "bfloat16", given: { dtype: "bfloat16" } },
    { title: "autocast to bfloat16", given: { amp: "bfloat16" } },
    { title: "autocast to float16", given: { amp: "float16" } },
  ] as const;

  test.each(narrow)("in $title, to its rounding", async ({ given }) => {
    const wanted: Training = { ...training, steps: 1, sequence: true, chunks: 2, ...given };
    const [one] = await ranks.run("train", 1, wanted);
    const all = await ranks.run("train", 2, wanted);
    if (one === undefined) throw new Error("no answer");
    for (const { losses } of all)
      expect(Math.abs((losses[0] ?? 0) / (one.losses[0] ?? 0) - 1)).toBeLessThan(2 ** -9);
    // Each of some twenty operators rounds to 8 bits (float16: to 11, but the loss is not scaled).
    expectNear(wholeOf(all.map((rank) => rank.gradients)), wholeOf([one.gradients]), 2 ** -4);
  });
});
