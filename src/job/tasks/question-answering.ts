import { type Tensor, tensor } from "../../compute/tensor/index.ts";
import { exampleError, type JsonRecord } from "../../library/data/index.ts";
import { answerF1, exactMatch, wordsOf } from "../../library/metrics/index.ts";
import { defineTask, outputsOf, taskDataset } from "./define-task.ts";
import { mapExamples, textIn } from "./examples/example.ts";
import { readExamples, recordFiles } from "./examples/files.ts";
import { numbersOf } from "./rows.ts";
import type { TaskDefinition } from "./task.ts";
import { type TextRow, TextRows, type TextTensors } from "./text-rows.ts";

/** A question, a text, and the words in it that answer: `begin` to before `end`, separated by spaces. */
export interface Question {
  readonly question: string;
  readonly words: readonly string[];
  readonly begin: number;
  readonly end: number;
  /** All correct answers. */
  readonly answers: readonly string[];
}

/** Questions with their texts, and the positions of the answers. */
export type Questions = TextTensors & {
  /** int64 [rows]; 0, the row's first token, if the answer was cut off. */
  readonly startPositions: Tensor;
  readonly endPositions: Tensor;
};

/** Maximum number of tokens of a predicted answer. */
const MOST_ANSWER_TOKENS = 30;

/**
 * Finds the words of a text that answer a question. Scores, as in SQuAD: exact matches, and F1 of the words. Texts that are too long
 * are cut, not read in windows.
 *
 * Files: `.jsonl`, `.parquet` or `.arrow` with `question`, `context` and `answers: { text: […], answer_start: […] }`, as SQuAD on the hub.
 */
export const questionAnswering: TaskDefinition<Question, Questions> = defineTask({
  task: "question_answering",

  read: (path) => readExamples(path, recordFiles(), fromRecord),

  dataset(examples, options) {
    const rows = new TextRows(options);
    const encoded = mapExamples(examples, (each) => {
      const row = rows.joinWords(each.words, each.question);
      return { ...each, row, start: firstOf(row, each.begin), last: lastOf(row, each.end - 1) };
    });
    const all = Object.values(encoded).flat();
    const length = options.length ?? rows.longest(all.map(({ row }) => row));
    return taskDataset(options, {
      splits: encoded,
      texts: { rows, rowOf: ({ row }) => row },
      collate: (batch, { split }): Questions => {
        const isCut = batch.map(({ start, last }) => start < 0 || last < 0);
        const positions = (of: readonly number[]) => {
          const places = of.map((place, index) => (isCut[index] ? 0 : place));
          return tensor(places, { dtype: "int64" });
        };
        return {
          ...rows.stackTo(batch, split, length),
          startPositions: positions(batch.map(({ start }) => start)),
          endPositions: positions(batch.map(({ last }) => last)),
        };
      },
      score: (predicted, asked) => {
        const [starts, ends] = [numbersOf(predicted, "starts"), numbersOf(predicted, "ends")];
        const guesses = asked.map((each, index) => answerOf(each, starts[index] ?? [], ends[index] ?? []));
        const answers = asked.map((each) => each.answers);
        return { exactMatch: exactMatch(guesses, answers), f1: answerF1(guesses, answers) };
      },
    });
  },

  predict: (model, { startPositions: _, endPositions: __, ...texts }) => {
    const { startLogits, endLogits } = outputsOf<"startLogits" | "endLogits">(model, texts);
    return { starts: startLogits, ends: endLogits };
  },
});

/** The words from the likeliest start to the likeliest end after it. */
function answerOf(
  { row, words }: { readonly row: TextRow; readonly words: readonly string[] },
  starts: readonly number[],
  ends: readonly number[],
): string {
  let best = { score: Number.NEGATIVE_INFINITY, start: 0, end: 0 };
  for (const [start, word] of row.words.entries()) {
    if (word < 0) continue;
    for (let end = start; end < Math.min(row.words.length, start + MOST_ANSWER_TOKENS); end++) {
      const score = (starts[start] ?? 0) + (ends[end] ?? 0);
      if ((row.words[end] ?? -1) >= 0 && score > best.score) best = { score, start, end };
    }
  }
  return words.slice(row.words[best.start], (row.words[best.end] ?? -1) + 1).join(" ");
}

const firstOf = ({ words }: TextRow, word: number) => words.indexOf(word);
const lastOf = ({ words }: TextRow, word: number) => words.lastIndexOf(word);

function fromRecord(record: JsonRecord, place: string): Question {
  const context = textIn(record, ["context"], place);
  const { text, answer_start: starts } = (record.answers ?? {}) as JsonRecord;
  if (!Array.isArray(text) || !Array.isArray(starts) || text.length === 0 || text.length !== starts.length)
    throw exampleError(place, "answers with text and answer_start", JSON.stringify(record.answers));
  const [answer, start] = [String(text[0]), Number(starts[0])];
  const begin = wordsOf(context.slice(0, start)).length - Number(/\S$/u.test(context.slice(0, start)));
  return {
    question: textIn(record, ["question"], place),
    words: wordsOf(context),
    begin,
    end: wordsOf(context.slice(0, start + answer.length)).length,
    answers: text.map(String),
  };
}
