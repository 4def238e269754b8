import { basename, dirname, resolve } from "node:path";
import { readJsonLines, readWav, sampleDataset } from "../data/index.ts";
import { characterErrorRate, wordErrorRate } from "../metrics/index.ts";
import { type ModelBatch, numAdapted, numFrames, type Wav2Vec2Config } from "../models/index.ts";
import { IGNORE_INDEX } from "../nn/index.ts";
import { arange, type Tensor, tensor } from "../tensor/index.ts";
import { example, textIn } from "./example.ts";
import { eachSplit, filesAt, splitFiles } from "./files.ts";
import { numbersOf } from "./rows.ts";
import type { TaskDefinition } from "./task.ts";

/** A recording, and what is said in it. */
export interface SpokenText {
  readonly samples: Float32Array;
  readonly text: string;
}

/** Recordings with what is said. */
export type SpokenTexts = {
  /** float32 [rows, length], each of mean 0 and deviation 1, 0 behind the end. */
  readonly inputValues: Tensor;
  /** int64 [rows, length]: 0 behind the end. */
  readonly attentionMask: Tensor;
  /** int64 [rows, most characters]; −100 behind the end. */
  readonly labels: Tensor;
};

const DIGITS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"];

/** Of the Free Spoken Digit Dataset's recordings those that are held out: the first of each speaker and digit. */
const NUM_HELD_OUT = 5;

/** A recording's name in that dataset. */
const digitFile = /^(\d)_(\w+)_(\d+)\.wav$/;

/**
 * What is said, written down in characters by CTC: the model's vocabulary must have room for the blank and every character.
 * Scores: error rates of words and characters, of the most likely path.
 *
 * Files: the Free Spoken Digit Dataset's `digit_speaker_index.wav`; `.jsonl` with `path`, beside it, and `text`.
 */
export const speechRecognition: TaskDefinition<SpokenText, SpokenTexts> = {
  task: "speech_recognition",

  async read(path) {
    const files = await filesAt(path);
    if (!files.some((file) => digitFile.test(basename(file)))) {
      return eachSplit(await splitFiles(path, /\.jsonl$/), async (file) =>
        Promise.all(
          (await readJsonLines(file)).map(async (record, index) => {
            const place = `${file}, example ${index + 1}`;
            const { samples } = await readWav(resolve(dirname(file), textIn(record, ["path"], place)));
            return { samples, text: textIn(record, ["text"], place) };
          }),
        ),
      );
    }
    const digits = files.flatMap((file) => {
      const [, digit, , index] = digitFile.exec(basename(file)) ?? [];
      return digit === undefined
        ? []
        : [{ file, text: DIGITS[Number(digit)] as string, index: Number(index) }];
    });
    const read = (of: typeof digits) =>
      Promise.all(of.map(async ({ file, text }) => ({ samples: (await readWav(file)).samples, text })));
    return eachSplit(
      {
        train: digits.filter(({ index }) => index >= NUM_HELD_OUT),
        validation: digits.filter(({ index }) => index < NUM_HELD_OUT),
      },
      read,
    );
  },

  dataset(examples, { config, length, seed, source }) {
    const all = Object.values(examples).flat();
    const blank = Number(config.pad_token_id ?? 0);
    const characters = charactersOf(
      examples.train.map(({ text }) => text),
      Number(config.vocab_size),
      blank,
    );
    const idOf = new Map([...characters].map(([id, character]) => [character, id]));
    const most = length ?? Math.max(...all.map(({ samples }) => samples.length));
    const mostLabels = Math.max(...all.map(({ text }) => [...text].length));
    return sampleDataset({
      facts: { source, fields: {}, numTrain: examples.train.length, characters: [...idOf.keys()] },
      splits: examples,
      seed,
      collate: (batch): SpokenTexts => {
        const values = new Float32Array(batch.length * most);
        const present = new BigInt64Array(batch.length * most);
        for (const [row, { samples }] of batch.entries()) {
          const heard = samples.subarray(0, most);
          values.set(normalised(heard), row * most);
          present.fill(1n, row * most, row * most + heard.length);
        }
        const labels = batch.map(({ text }) => {
          const ids = [...text].map((character) => idOf.get(character) ?? blank);
          return [...ids, ...new Array<number>(mostLabels - ids.length).fill(IGNORE_INDEX)];
        });
        return {
          inputValues: tensor(values, { shape: [batch.length, most] }),
          attentionMask: tensor(present, { shape: [batch.length, most] }),
          labels: tensor(labels, { dtype: "int64" }),
        };
      },
      score: (split, predicted) => {
        const paths = numbersOf(predicted, "paths");
        const texts = (examples[split] ?? []).slice(0, paths.length).map(({ text }) => text);
        const guesses = paths.map((path) => textOf(path, characters, blank));
        return {
          wordErrorRate: wordErrorRate(guesses, texts),
          characterErrorRate: characterErrorRate(guesses, texts),
        };
      },
    });
  },

  loss: (model, batch) => model.forward(batch as ModelBatch).loss as Tensor,

  predict: (model, { inputValues, attentionMask }) => {
    const { logits } = model.forward({ inputValues, attentionMask } as ModelBatch); // [B, frames, V]
    const paths = (logits as Tensor).argmax(2);
    const config = model.configJson as unknown as Wav2Vec2Config;
    const heard = numAdapted(numFrames(attentionMask.sum([1]), config), config);
    const isPadding = arange(paths.shape[1] ?? 0, { dtype: "int64" })
      .unsqueeze(0)
      .ge(heard.unsqueeze(1));
    return { paths: paths.maskedFill(isPadding, SILENCE) };
  },
};

/** A frame behind a recording's end, which is no character's id. */
const SILENCE = -1;

/** The character of each id: in their own order, around the blank. */
function charactersOf(texts: readonly string[], vocabSize: number, blank: number): Map<number, string> {
  const found = [...new Set(texts.flatMap((text) => [...text]))].toSorted();
  if (found.length + 1 > vocabSize)
    throw example("config.json", `a vocab_size of at least ${found.length + 1}`, vocabSize);
  return new Map(found.map((character, index) => [index < blank ? index : index + 1, character]));
}

/** What a path says: repetitions once, blanks not at all. */
function textOf(path: readonly number[], characters: ReadonlyMap<number, string>, blank: number): string {
  return path
    .filter((id, place) => id !== blank && id !== path[place - 1])
    .map((id) => characters.get(id) ?? "")
    .join("");
}

/** As transformers' feature extractor: mean 0, deviation 1, in which 1e-7 keeps silence finite. */
function normalised(samples: Float32Array): Float32Array {
  const mean = samples.reduce((sum, value) => sum + value, 0) / Math.max(1, samples.length);
  const variance = samples.reduce((sum, value) => sum + (value - mean) ** 2, 0) / Math.max(1, samples.length);
  return samples.map((value) => (value - mean) / Math.sqrt(variance + 1e-7));
}
