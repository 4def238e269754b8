import { type Tensor, tensor } from "../../compute/tensor/index.ts";
import { exampleError, type JsonRecord, type Rows } from "../../library/data/index.ts";
import { accuracy, f1Score, matthewsCorrelation, pearson, spearman } from "../../library/metrics/index.ts";
import { defineTask, taskDataset } from "./define-task.ts";
import { mapExamples, textIn } from "./examples/example.ts";
import { readExamples, recordFiles } from "./examples/files.ts";
import { Labels } from "./examples/labels.ts";
import { indexOfMax, numbersOf } from "./rows.ts";
import type { Examples, Fields, TaskDefinition } from "./task.ts";
import { TextRows, type TextTensors } from "./text-rows.ts";

/** A text, or two, with a label: a class by number or name, or a number if any text's label has a fraction. */
export interface TextExample {
  readonly text: string;
  readonly pair?: string | undefined;
  readonly label: string | number;
}

/** Texts with a label each. */
export type LabelledTexts = TextTensors & {
  /** int64 [rows]; float32 if labels are numbers and not classes. */
  readonly labels: Tensor;
};

/**
 * Classifies a text, or a pair of texts. Scores of classes: accuracy, Matthews' correlation, and F1: of the second of two classes, or
 * the mean over all; of numbers: Pearson's and Spearman's correlations.
 *
 * Files: the Microsoft Research Paraphrase Corpus; `.tsv` with columns `sentence1`, `sentence2` and `label`, as in GLUE, or
 * `sentence` and `label`; `.jsonl` with `text`, optionally `pair`, and `label`; `.parquet` or `.arrow` with any of these.
 */
export const sequenceClassification: TaskDefinition<TextExample, LabelledTexts> = defineTask({
  task: "sequence_classification",

  read: (path) => readExamples(path, recordFiles("tsv", "txt"), fromRecord),

  dataset(examples, options) {
    const rows = new TextRows(options);
    const { areClasses, labels } = labelsOf(examples, options.config);
    const encoded = mapExamples(examples, ({ text, pair, label }) => ({
      row: rows.join(text, pair),
      label: areClasses ? labels.idOf(label) : Number(label),
    }));
    const all = Object.values(encoded).flat();
    const length = options.length ?? rows.longest(all.map(({ row }) => row));
    return taskDataset(options, {
      splits: encoded,
      fields: areClasses ? labels.fields : { num_labels: 1, id2label: undefined, problem_type: "regression" },
      texts: { rows, rowOf: ({ row }) => row },
      collate: (batch, { split }): LabelledTexts => {
        const given = batch.map(({ label }) => label);
        const dtype = areClasses ? "int64" : "float32";
        return { ...rows.stackTo(batch, split, length), labels: tensor(given, { dtype }) };
      },
      score: (predicted, asked) => {
        const right = asked.map(({ label }) => label);
        return scoresOf(predicted, right, areClasses ? labels.names.length : 1);
      },
    });
  },
});

function fromRecord(record: JsonRecord, place: string): TextExample {
  const text = textIn(record, ["text", "sentence", "sentence1", "#1 String"], place);
  const pair = record.pair ?? record.sentence2 ?? record["#2 String"];
  const label = record.label ?? record.Quality;
  if (typeof label !== "string" && typeof label !== "number") throw exampleError(place, "a label", label);
  return { text, pair: pair === undefined ? undefined : String(pair), label };
}

function labelsOf({ train }: Examples<TextExample>, config: Fields): { areClasses: boolean; labels: Labels } {
  const given = new Set(train.map(({ label }) => label));
  const numbers = [...given].map(Number);
  const areClasses = numbers.some(Number.isNaN) || numbers.every(Number.isInteger);
  const folder = { task: "sequence_classification", config } as const;
  return { areClasses, labels: new Labels(areClasses ? given : [], folder) };
}

function scoresOf(predicted: Rows, labels: readonly number[], numClasses: number) {
  const logits = numbersOf(predicted, "logits");
  if (numClasses === 1) {
    const numbers = logits.map(([number = 0]) => number);
    return { pearson: pearson(numbers, labels), spearman: spearman(numbers, labels) };
  }
  const guesses = logits.map(indexOfMax);
  return {
    accuracy: accuracy(guesses, labels),
    f1: f1Score(guesses, labels, numClasses === 2 ? { kind: "class", class: 1 } : { kind: "macro" }),
    matthews: matthewsCorrelation(guesses, labels),
  };
}
