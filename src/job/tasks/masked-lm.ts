import { IGNORE_INDEX } from "../../compute/nn/index.ts";
import { ops, type Tensor } from "../../compute/tensor/index.ts";
import { hideTokens } from "../../library/data/index.ts";
import { familyOf } from "../../library/models/index.ts";
import { natsOf, scoreNats } from "./causal-lm.ts";
import { defineTask, outputsOf, taskDataset } from "./define-task.ts";
import { mapExamples, mapSplits } from "./examples/example.ts";
import { readTexts } from "./examples/texts.ts";
import { sumsOf } from "./rows.ts";
import type { WeighedTask } from "./task.ts";
import { TextRows, type TextTensors } from "./text-rows.ts";

/** Texts with masked tokens. */
export type GappedTexts = TextTensors & {
  /** int64 [rows, length]: the original tokens at masked positions; −100 elsewhere. */
  readonly labels: Tensor;
};

/**
 * Predicts masked tokens. The masks are a function of the seed and of the number of samples read before, so they differ in each
 * epoch. Scores: perplexity and accuracy at masked tokens.
 *
 * Files: see `readTexts`; each line of a text is a text of its own.
 */
export const maskedLm: WeighedTask<string, GappedTexts> = defineTask({
  task: "masked_lm",
  read: readTexts,

  dataset(examples, options) {
    const { config, seed } = options;
    const rows = new TextRows(options);
    const mask = rows.idOf(familyOf(config)?.texts?.mask ?? "[MASK]");
    const lines = mapExamples(examples, (text) => text.split("\n").filter((line) => line.trim() !== ""));
    const splits = mapSplits(lines, (of) => of.flat().map((line) => rows.join(line)));
    const length = options.length ?? rows.longest(Object.values(splits).flat());
    return taskDataset(options, {
      splits,
      texts: { rows, rowOf: (row) => row },
      collate: (batch, { split, position }): GappedTexts => {
        const vocabSize = Number(config.vocab_size);
        const gapped = batch.map((row, index) => {
          const { ids, labels } = hideTokens(row.ids, row.isText, {
            mask,
            vocabSize,
            seed,
            draw: position + index,
          });
          return { row: { ...row, ids }, labels };
        });
        const answers = gapped.map(({ labels }) => labels);
        const labels = rows.padTo(answers, split, length, IGNORE_INDEX);
        return { ...rows.stackTo(gapped, split, length), labels };
      },
      score: (predicted) => {
        const [numRight = 0, numMasked = 0] = sumsOf(predicted, "right");
        return { ...scoreNats(predicted), accuracy: numRight / Math.max(1, numMasked) };
      },
    });
  },

  weigh: ({ labels }) => labels.ge(0).sum().item(),

  predict: (model, { labels, ...texts }) => {
    const { logits } = outputsOf<"logits">(model, texts); // [B, T, V]
    const right = logits.argmax(2).eq(labels).sum([1]);
    return { ...natsOf(logits, labels), right: ops.stack([right, labels.ge(0).sum([1])], 1).to("float32") };
  },
});
