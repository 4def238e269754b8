import { crossEntropy, IGNORE_INDEX, shiftLabels } from "../../compute/nn/index.ts";
import { ops, type Tensor } from "../../compute/tensor/index.ts";
import type { Rows } from "../../library/data/index.ts";
import { perplexity } from "../../library/metrics/index.ts";
import { defineTask, outputsOf, taskDataset } from "./define-task.ts";
import { mapSplits } from "./examples/example.ts";
import { readTexts, windowsOf } from "./examples/texts.ts";
import { packTexts } from "./pack-texts.ts";
import { sumsOf } from "./rows.ts";
import type { WeighedTask } from "./task.ts";
import { TextRows } from "./text-rows.ts";

/** Windows of texts. */
export type TextWindowBatch = {
  /** int64 [rows, length]. */
  readonly inputIds: Tensor;
  /** The inputs; −100 at padding, and at the first token of each packed window. */
  readonly labels: Tensor;
  /** int64 [n + 1], start of each packed window, and end of the last; undefined unless packed. */
  readonly segments?: Tensor;
};

/** Texts may be longer than a row: they are cut into rows. */
const unbounded = { max_position_embeddings: undefined, n_positions: undefined };

/** Default tokens of a window. */
const LENGTH = 256;

/**
 * Predicts the next token. Score: perplexity over all predicted tokens.
 *
 * Files: see `readTexts`. For long texts on disk that are read repeatedly, `textDataset` is better.
 */
export const causalLm: WeighedTask<string, TextWindowBatch> = defineTask({
  task: "causal_lm",
  read: readTexts,

  dataset(examples, options) {
    const length = Math.min(options.length ?? LENGTH, new TextRows(options).mostTokens);
    const rows = new TextRows({ ...options, config: { ...options.config, ...unbounded }, length: undefined });
    const windows = (texts: readonly string[]) =>
      texts.flatMap((text) => windowsOf(rows.tokensOf(text), length).map((ids) => ({ ids })));
    return taskDataset(options, {
      splits: mapSplits(examples, windows),
      texts: { rows, rowOf: (window) => window },
      collate: (batch, { split }): TextWindowBatch => {
        const lists = batch.map(({ ids }) => ids);
        const packing = rows.packingOf(split);
        if (packing) return packTexts(lists, packing);
        return {
          inputIds: rows.padTo(lists, split, length, rows.padding),
          labels: rows.padTo(lists, split, length, IGNORE_INDEX),
        };
      },
      countTokens: ({ labels, segments }) =>
        labels.ge(0).sum().item() + (segments ? (segments.shape[0] ?? 1) - 1 : 0),
      score: (predicted) => scoreNats(predicted),
    });
  },

  // All tokens but the first of each row or packed window are predicted.
  weigh: ({ labels }) =>
    labels
      .narrow(1, 1, (labels.shape[1] ?? 1) - 1)
      .ge(0)
      .sum()
      .item(),

  predict: (model, { inputIds, labels }) => {
    const { logits } = outputsOf<"logits">(model, { inputIds }); // [B, T, V]
    return natsOf(logits, shiftLabels(labels));
  },
});

/** Total loss of each row, and number of its predicted tokens: float32 [B, 2]. */
export function natsOf(logits: Tensor, targets: Tensor): { readonly nats: Tensor } {
  const nats = crossEntropy(logits, targets, { reduction: "none" }).view(targets.shape).sum([1]);
  return { nats: ops.stack([nats, targets.ge(0).sum([1]).to("float32")], 1) };
}

/** The perplexity of all rows' {@link natsOf}. */
export function scoreNats(predicted: Rows): { readonly perplexity: number } {
  const [nats = 0, numTokens = 0] = sumsOf(predicted, "nats");
  return { perplexity: perplexity(nats, numTokens) };
}
