import { basename } from "node:path";
import {
  type Awaitable,
  decodeSound,
  type JsonRecord,
  readWav,
  type SoundFacts,
  soundFacts,
} from "../../../library/data/index.ts";
import type { Examples } from "../task.ts";
import { eachSplit, inTurns } from "./files.ts";
import { filesAt } from "./splits.ts";
import { bytesOf, mediaIn, readStored, type StoredRecord } from "./stored.ts";

const DIGITS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"];

/** Held-out recordings of each speaker and digit in the Free Spoken Digit Dataset: the first ones. */
const NUM_HELD_OUT = 5;

/** A recording's name in that dataset. */
const digitFile = /^(\d)_(\w+)_(\d+)\.wav$/;

/** Names of held-out recordings in other folders. */
const heldOut = /(dev|valid|test)/i;

/** The samples of a recording that stay in its file until they are needed. */
export interface StoredSamples extends SoundFacts {
  /** Names the recording in errors. */
  readonly place: string;
  /** @throws {TroupeError} `DATA_EXAMPLE` naming the file and the record, `DATA_UNREADABLE`, `DATA_PACKAGE` */
  read(): Awaitable<Float32Array>;
}

/** Columns of recordings: on Hugging Face's hub, in tars, and of paths. */
const RECORDINGS = ["audio", "wav", "flac", "ogg", "mp3", "file_name", "path"];

/** Ends of the names of tables that name recordings or have them. */
const tables = /\.(jsonl|parquet|arrow|tar|tgz)(\.gz|\.zst)?$/;

/**
 * Reads the recordings below a path: the Free Spoken Digit Dataset's `digit_speaker_index.wav`; other `.wav` without texts; or records
 * with `audio`, or its `path`, as {@link readStored} finds them.
 * @param exampleOf - makes an example of samples and their record; a digit's word is its `text` and `label`
 */
export async function readRecordings<E>(
  path: string,
  exampleOf: (samples: StoredSamples, record: JsonRecord, place: string) => E,
): Promise<Examples<E>> {
  const exampleIn = async ({ file, record }: { readonly file: string; readonly record: JsonRecord }) => {
    const { samples, samplesPerSecond } = await readWav(file);
    const read = async () => (await readWav(file)).samples;
    return exampleOf({ length: samples.length, samplesPerSecond, place: file, read }, record, file);
  };
  const files = await filesAt(path);
  const digits = files.flatMap((file) => {
    const [, digit, , index] = digitFile.exec(basename(file)) ?? [];
    const word = digit === undefined ? undefined : DIGITS[Number(digit)];
    return word === undefined ? [] : [{ file, record: { text: word, label: word }, index: Number(index) }];
  });
  const sounds = files
    .filter((file) => /\.wav$/i.test(file))
    .map((file) => ({ file, record: {}, index: isHeldOut(file) ? 0 : NUM_HELD_OUT }));
  const isTable = files.some((file) => tables.test(file));
  if (digits.length === 0 && (sounds.length === 0 || isTable))
    return readStored(path, async (stored) =>
      exampleOf(await samplesIn(stored), stored.record, stored.place),
    );
  const all = digits.length > 0 ? digits : sounds;
  const [held, train] = [
    all.filter(({ index }) => index < NUM_HELD_OUT),
    all.filter(({ index }) => index >= NUM_HELD_OUT),
  ];
  const splits = held.length === 0 || train.length === 0 ? { train: all } : { train, validation: held };
  return eachSplit(splits, (of) => inTurns(of, exampleIn));
}

async function samplesIn({ record, place, folder, again }: StoredRecord): Promise<StoredSamples> {
  const soundOf = (of: JsonRecord) => bytesOf(mediaIn({ record: of, place, folder }, RECORDINGS), place);
  const sound = await soundOf(record);
  return {
    ...(await soundFacts(sound.bytes, sound.place)),
    place: sound.place,
    read: async () => {
      const now = await soundOf(await again());
      return (await decodeSound(now.bytes, now.place)).samples;
    },
  };
}

const isHeldOut = (file: string): boolean => heldOut.test(basename(file));
