import { basename, dirname, resolve } from "node:path";
import { type Tensor, tensor } from "../../../compute/tensor/index.ts";
import { type JsonRecord, readWav } from "../../../library/data/index.ts";
import type { Examples } from "../task.ts";
import { textIn } from "./example.ts";
import { eachSplit, readExamples } from "./files.ts";
import { filesAt } from "./splits.ts";

const DIGITS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"];

/** Held-out recordings of each speaker and digit in the Free Spoken Digit Dataset: the first ones. */
const NUM_HELD_OUT = 5;

/** A recording's name in that dataset. */
const digitFile = /^(\d)_(\w+)_(\d+)\.wav$/;

/** Names of held-out recordings in other folders. */
const heldOut = /(dev|valid|test)/i;

/**
 * Reads the recordings below a path: the Free Spoken Digit Dataset's `digit_speaker_index.wav`, `.jsonl` with their `path`, or other
 * `.wav` without texts.
 * @param exampleOf - makes an example of samples and their record; a digit's word is its `text` and `label`
 */
export async function readRecordings<E>(
  path: string,
  exampleOf: (samples: Float32Array, record: JsonRecord, place: string) => E,
): Promise<Examples<E>> {
  const exampleIn = async (file: string, record: JsonRecord) =>
    exampleOf((await readWav(file)).samples, record, file);
  const files = await filesAt(path);
  const digits = files.flatMap((file) => {
    const [, digit, , index] = digitFile.exec(basename(file)) ?? [];
    const word = digit === undefined ? undefined : DIGITS[Number(digit)];
    return word === undefined ? [] : [{ file, record: { text: word, label: word }, index: Number(index) }];
  });
  const sounds = files.filter((file) => /\.wav$/i.test(file));
  if (digits.length === 0 && sounds.length > 0 && !files.some((file) => /\.jsonl$/.test(file))) {
    const [held, train] = [sounds.filter(isHeldOut), sounds.filter((file) => !isHeldOut(file))];
    const splits = held.length === 0 || train.length === 0 ? { train: sounds } : { train, validation: held };
    return eachSplit(splits, (of) => Promise.all(of.map((file) => exampleIn(file, {}))));
  }
  if (digits.length === 0)
    return readExamples(path, /\.jsonl$/, async (record, place, file) => {
      const { samples } = await readWav(resolve(dirname(file), textIn(record, ["path"], place)));
      return exampleOf(samples, record, place);
    });
  const splits = {
    train: digits.filter(({ index }) => index >= NUM_HELD_OUT),
    validation: digits.filter(({ index }) => index < NUM_HELD_OUT),
  };
  return eachSplit(splits, (of) => Promise.all(of.map(({ file, record }) => exampleIn(file, record))));
}

const isHeldOut = (file: string): boolean => heldOut.test(basename(file));

/** Recordings as input of a model. */
export type RecordingTensors = {
  /** float32 [rows, length], each with mean 0 and deviation 1; 0 after the end. */
  readonly inputValues: Tensor;
  /** int64 [rows, length]: 1 in the recording, 0 after its end. */
  readonly attentionMask: Tensor;
};

/** Stacks recordings, cut to `length` samples. The caller disposes of them. */
export function stackRecordings(
  recordings: readonly { readonly samples: Float32Array }[],
  length: number,
): RecordingTensors {
  const values = new Float32Array(recordings.length * length);
  const present = new BigInt64Array(recordings.length * length);
  for (const [row, { samples }] of recordings.entries()) {
    const heard = samples.subarray(0, length);
    values.set(normalised(heard), row * length);
    present.fill(1n, row * length, row * length + heard.length);
  }
  const shape = [recordings.length, length];
  return { inputValues: tensor(values, { shape }), attentionMask: tensor(present, { shape }) };
}

/** Normalizes to mean 0 and deviation 1, as transformers' feature extractor; 1e-7 keeps silence finite. */
function normalised(samples: Float32Array): Float32Array {
  const count = Math.max(1, samples.length);
  let sum = 0;
  for (const value of samples) sum += value;
  const mean = sum / count;
  let squares = 0;
  for (const value of samples) squares += (value - mean) ** 2;
  const deviation = Math.sqrt(squares / count + 1e-7);
  return samples.map((value) => (value - mean) / deviation);
}
