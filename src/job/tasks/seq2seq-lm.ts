import { IGNORE_INDEX } from "../../compute/nn/index.ts";
import type { Tensor } from "../../compute/tensor/index.ts";
import { accuracy } from "../../library/metrics/index.ts";
import { shiftRight } from "../../library/models/index.ts";
import { defineTask, outputsOf, taskDataset } from "./define-task.ts";
import { mapExamples, textIn } from "./examples/example.ts";
import { readExamples, recordFiles } from "./examples/files.ts";
import { numbersOf } from "./rows.ts";
import type { WeighedTask } from "./task.ts";
import { TextRows, type TextTensors } from "./text-rows.ts";

/** A text and its target. */
export interface TextPair {
  readonly source: string;
  readonly target: string;
}

/** Texts and their targets. */
export type TextPairs = Omit<TextTensors, "tokenTypeIds"> & {
  /** int64 [rows, length]; −100 at padding. */
  readonly labels: Tensor;
};

/**
 * Generates a text from a text. Scores: the share of targets for which greedy decoding makes no error (each token is the likeliest
 * after those before it), and accuracy of tokens.
 *
 * Files: `.jsonl`, `.parquet`, `.arrow` or `.tsv` with `source` and `target`.
 */
export const seq2seqLm: WeighedTask<TextPair, TextPairs> = defineTask({
  task: "seq2seq_lm",

  read: (path) =>
    readExamples(path, recordFiles("tsv"), (record, place) => ({
      source: textIn(record, ["source"], place),
      target: textIn(record, ["target"], place),
    })),

  dataset(examples, options) {
    const rows = new TextRows(options);
    const encoded = mapExamples(examples, ({ source, target }) => ({
      source: rows.join(source),
      target: rows.join(target),
    }));
    const all = Object.values(encoded).flat();
    const longest = rows.longest(all.map(({ source }) => source));
    const longestTarget = rows.longest(all.map(({ target }) => target));
    return taskDataset(options, {
      splits: encoded,
      texts: { rows, rowOf: ({ source }) => source },
      collate: (batch, { split }): TextPairs => {
        const sources = batch.map(({ source: row }) => ({ row }));
        const { inputIds, attentionMask } = rows.stackTo(sources, split, options.length ?? longest);
        const targets = batch.map(({ target }) => target);
        const width = rows.widthOf(targets, split, options.length ?? longestTarget);
        const ids = targets.map((target) => target.ids);
        return { inputIds, attentionMask, labels: rows.pad(ids, width, IGNORE_INDEX) };
      },
      countTokens: ({ attentionMask, labels }) => attentionMask.sum().item() + labels.ge(0).sum().item(),
      score: (predicted, asked) => {
        const guesses = numbersOf(predicted, "guesses");
        const targets = asked.map(({ target }) => target.ids);
        const guessed = targets.map((ids, index) => ids.map((_, place) => guesses[index]?.[place] ?? -1));
        const exact = targets.filter((ids, index) =>
          ids.every((id, place) => guessed[index]?.[place] === id),
        );
        return {
          exactMatch: exact.length / Math.max(1, targets.length),
          accuracy: accuracy(guessed.flat(), targets.flat()),
        };
      },
    });
  },

  weigh: ({ labels }) => labels.ge(0).sum().item(),

  predict: (model, { labels, ...texts }) => {
    const { decoder_start_token_id: start, pad_token_id: padding } = model.configJson;
    const decoderInputIds = shiftRight(labels, Number(start), Number(padding ?? 0));
    const { logits } = outputsOf<"logits">(model, { ...texts, decoderInputIds }); // [B, T, V]
    return { guesses: logits.argmax(2) };
  },
});
