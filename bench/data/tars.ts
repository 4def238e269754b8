import { createWriteStream } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { tarFiles } from "../../test/fixtures/records/tar-of.ts";

const AT_ONCE = 1_000;

/** Writes `numSamples` samples, each a member of JSON with its number and some text, into so many tars. */
export async function makeTars(folder: string, numSamples: number, numFiles: number): Promise<void> {
  const perFile = Math.ceil(numSamples / numFiles);
  for (let file = 0; file < numFiles; file++) {
    const [begin, end] = [file * perFile, Math.min(numSamples, (file + 1) * perFile)];
    const parts = function* () {
      for (let at = begin; at < end; at += AT_ONCE) yield samples(at, Math.min(end, at + AT_ONCE));
      yield Buffer.alloc(1_024);
    };
    await pipeline(
      Readable.from(parts()),
      createWriteStream(join(folder, `train-${`${file}`.padStart(4, "0")}.tar`)),
    );
  }
}

function samples(begin: number, end: number): Buffer {
  return tarFiles(
    Array.from({ length: end - begin }, (_, index) => {
      const number = begin + index;
      const text = "a sample of some words ".repeat(5 + (number % 10));
      return { name: `${`${number}`.padStart(8, "0")}.json`, data: JSON.stringify({ number, text }) };
    }),
  );
}
