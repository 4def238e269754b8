import { IGNORE_INDEX } from "../../compute/nn/index.ts";
import { arange, type Tensor, tensor } from "../../compute/tensor/index.ts";
import { exampleError } from "../../library/data/index.ts";
import { characterErrorRate, wordErrorRate } from "../../library/metrics/index.ts";
import { numAdapted, numFrames, type SpeechConfig } from "../../library/models/index.ts";
import { defineTask, outputsOf } from "./define-task.ts";
import { textIn } from "./examples/example.ts";
import { readRecordings } from "./examples/recordings.ts";
import { type BareRecording, type RecordingTensors, recordingDataset } from "./recording-dataset.ts";
import { numbersOf } from "./rows.ts";
import type { TaskDefinition } from "./task.ts";

/** A recording with its transcript. */
export interface SpokenText extends BareRecording {
  readonly text: string;
}

/** Columns of transcripts: of tars, and on Hugging Face's hub. */
const TEXTS = ["text", "txt", "transcript", "transcription", "sentence"];

/** Recordings with their transcripts. */
export type SpokenTexts = RecordingTensors & {
  /** int64 [rows, most characters]; −100 at padding. */
  readonly labels: Tensor;
};

/**
 * Transcribes recordings to characters with CTC; the model's vocabulary needs an id for the blank and every character. Scores: error
 * rates of words and characters, of the likeliest path.
 *
 * Files: the Free Spoken Digit Dataset's `digit_speaker_index.wav`; see `readRecordings`, with `text`, `transcription` or `sentence`.
 */
export const speechRecognition: TaskDefinition<SpokenText, SpokenTexts> = defineTask<SpokenText, SpokenTexts>(
  {
    task: "speech_recognition",

    read: (path) =>
      readRecordings(path, (samples, record, place) => ({ samples, text: textIn(record, TEXTS, place) })),

    dataset(examples, options) {
      const { config } = options;
      const all = Object.values(examples).flat();
      const blank = Number(config.pad_token_id ?? 0);
      const texts = examples.train.map(({ text }) => text);
      const characters = charactersOf(texts, Number(config.vocab_size), blank);
      const idOf = new Map([...characters].map(([id, character]) => [character, id]));
      const mostLabels = Math.max(...all.map(({ text }) => [...text].length));
      return recordingDataset(examples, options, {
        facts: { characters: [...idOf.keys()] },
        targets: (batch) => {
          const labels = batch.map(({ text }) => {
            const ids = [...text].map((character) => idOf.get(character) ?? blank);
            return [...ids, ...new Array<number>(mostLabels - ids.length).fill(IGNORE_INDEX)];
          });
          return { labels: tensor(labels, { dtype: "int64" }) };
        },
        score: (predicted, asked) => {
          const texts = asked.map(({ text }) => text);
          const guesses = numbersOf(predicted, "paths").map((path) => textOf(path, characters, blank));
          return {
            wordErrorRate: wordErrorRate(guesses, texts),
            characterErrorRate: characterErrorRate(guesses, texts),
          };
        },
      });
    },

    predict: (model, { inputValues, attentionMask }) => {
      const { logits } = outputsOf<"logits">(model, { inputValues, attentionMask }); // [B, frames, V]
      const paths = logits.argmax(2);
      const config = model.configJson as unknown as SpeechConfig;
      const heard = numAdapted(numFrames(attentionMask.sum([1]), config), config);
      const isPadding = arange(paths.shape[1] ?? 0, { dtype: "int64" })
        .unsqueeze(0)
        .ge(heard.unsqueeze(1));
      return { paths: paths.maskedFill(isPadding, SILENCE) };
    },
  },
);

/** Marks frames after a recording's end; not an id. */
const SILENCE = -1;

/** The character of each id, sorted, skipping the blank's id. */
function charactersOf(texts: readonly string[], vocabSize: number, blank: number): Map<number, string> {
  const found = [...new Set(texts.flatMap((text) => [...text]))].toSorted();
  if (found.length + 1 > vocabSize)
    throw exampleError("config.json", `a vocab_size of at least ${found.length + 1}`, vocabSize);
  return new Map(found.map((character, index) => [index < blank ? index : index + 1, character]));
}

/** The text of a path: repetitions collapse to one, blanks are dropped. */
function textOf(path: readonly number[], characters: ReadonlyMap<number, string>, blank: number): string {
  return path
    .filter((id, place) => id !== blank && id !== path[place - 1])
    .map((id) => characters.get(id) ?? "")
    .join("");
}
