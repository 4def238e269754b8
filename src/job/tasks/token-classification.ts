import { IGNORE_INDEX } from "../../compute/nn/index.ts";
import type { Tensor } from "../../compute/tensor/index.ts";
import { exampleError, type JsonRecord, readConllu, type TaggedWords } from "../../library/data/index.ts";
import { accuracy, entityF1, f1Score } from "../../library/metrics/index.ts";
import { defineTask, outputsOf, taskDataset } from "./define-task.ts";
import { mapExamples } from "./examples/example.ts";
import { readSplits, recordFiles, recordsIn } from "./examples/files.ts";
import { Labels } from "./examples/labels.ts";
import { numbersOf } from "./rows.ts";
import type { WeighedTask } from "./task.ts";
import { type TextRow, TextRows, type TextTensors } from "./text-rows.ts";

/** Texts with a label on the first token of each word. */
export type TaggedTexts = TextTensors & {
  /** int64 [rows, length]; −100 is left out of the loss. */
  readonly labels: Tensor;
};

/**
 * Classifies each word of a text. Scores: accuracy over words and mean F1 of the tags; for tags `B-`, `I-` and `O` also F1 of
 * complete names.
 *
 * Files: CoNLL-U, whose universal parts of speech are read; `.jsonl`, `.parquet` or `.arrow` with `words` and `tags`, or `tokens` and
 * `ner_tags`.
 */
export const tokenClassification: WeighedTask<TaggedWords, TaggedTexts> = defineTask({
  task: "token_classification",

  read: (path) =>
    readSplits(path, recordFiles("conllu"), async (file) =>
      file.endsWith(".conllu")
        ? readConllu(file)
        : (await recordsIn(file)).map((record, index) => fromRecord(record, `${file}, example ${index + 1}`)),
    ),

  dataset(examples, options) {
    const rows = new TextRows(options);
    const { config } = options;
    const known = examples.train.flatMap(({ tags }) => tags);
    const labels = new Labels(known, { task: "token_classification", config, areNumbersKnown: true });
    const encoded = mapExamples(examples, ({ words, tags }) => {
      const row = rows.joinWords(words);
      const ids = tags.map((tag) => labels.idOf(tag));
      return { row, labels: labelsOf(row, ids) };
    });
    const all = Object.values(encoded).flat();
    const length = options.length ?? rows.longest(all.map(({ row }) => row));
    return taskDataset(options, {
      splits: encoded,
      fields: labels.fields,
      texts: { rows, rowOf: ({ row }) => row },
      collate: (batch, { split }): TaggedTexts => {
        const answers = batch.map((each) => each.labels);
        const padded = rows.padTo(answers, split, length, IGNORE_INDEX);
        return { ...rows.stackTo(batch, split, length), labels: padded };
      },
      score: (predicted, asked) => {
        const guesses = numbersOf(predicted, "guesses");
        const pairs = asked.map((each, index) => {
          const places = each.labels.flatMap((label, place) => (label >= 0 ? [place] : []));
          return {
            guessed: places.map((place) => guesses[index]?.[place] ?? -1),
            right: places.map((place) => each.labels[place] as number),
          };
        });
        const [guessed, right] = [pairs.map((each) => each.guessed), pairs.map((each) => each.right)];
        const named = (ids: readonly number[]) => ids.map((id) => labels.names[id] ?? "O");
        const haveEntities = labels.names.some((name) => name.startsWith("B-"));
        return {
          accuracy: accuracy(guessed.flat(), right.flat()),
          f1: f1Score(guessed.flat(), right.flat(), { kind: "macro" }),
          ...(haveEntities && { entityF1: entityF1(guessed.map(named), right.map(named)) }),
        };
      },
    });
  },

  weigh: ({ labels }) => labels.ge(0).sum().item(),

  predict: (model, { labels: _, ...texts }) => ({
    guesses: outputsOf<"logits">(model, texts).logits.argmax(2), // [B, T, C] → [B, T]
  }),
});

/** Puts each word's label at its first token. */
function labelsOf({ words }: TextRow, tags: readonly number[]): number[] {
  return words.map((word, place) =>
    word < 0 || word === words[place - 1] ? IGNORE_INDEX : (tags[word] as number),
  );
}

function fromRecord(record: JsonRecord, place: string): TaggedWords {
  const words = record.words ?? record.tokens;
  const tags = record.tags ?? record.ner_tags;
  if (!Array.isArray(words) || !Array.isArray(tags) || words.length !== tags.length)
    throw exampleError(place, "as many tags as words", "something else");
  return { words: words.map(String), tags: tags.map(String) };
}
