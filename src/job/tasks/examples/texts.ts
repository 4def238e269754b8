import { maxFileBytes, readBoundedText } from "../../../errors/untrusted/index.ts";
import { noteFile, readRecords, type TokenArray } from "../../../library/data/index.ts";
import type { Examples } from "../task.ts";
import { textIn } from "./example.ts";
import { eachSplit, splitFiles } from "./files.ts";

/** The share of a text that is held out where nothing else is: its end. */
const HELD_OUT = 0.1;

/**
 * Texts to learn a language from: `.jsonl` or `.parquet` with `text`, each record one of them, or `.txt`, each file one. Of texts that lie in one
 * file alone the last tenth is held out.
 */
export async function readTexts(path: string): Promise<Examples<string>> {
  const examples = await eachSplit(await splitFiles(path, /\.(jsonl|parquet|txt)$/), async (file) =>
    file.endsWith(".txt")
      ? [await readTextFile(file)]
      : (await readRecords(file)).map((record, index) =>
          textIn(record, ["text"], `${file}, example ${index + 1}`),
        ),
  );
  return examples.validation === undefined ? parted(examples.train) : examples;
}

function parted(texts: readonly string[]): Examples<string> {
  if (texts.length > 1) {
    const end = Math.max(1, Math.floor(texts.length * (1 - HELD_OUT)));
    return { train: texts.slice(0, end), validation: texts.slice(end) };
  }
  const [text = ""] = texts;
  const end = Math.floor(text.length * (1 - HELD_OUT));
  return { train: [text.slice(0, end)], validation: [text.slice(end)] };
}

/** A text's tokens side by side in windows of `length`; what is left at the end is too short for one, unless it is the only one. */
export function windowsOf(tokens: TokenArray, length: number): TokenArray[] {
  const count = Math.max(1, Math.floor(tokens.length / length));
  return Array.from({ length: count }, (_, index) => tokens.subarray(index * length, (index + 1) * length));
}

function readTextFile(path: string): Promise<string> {
  noteFile(path);
  return readBoundedText(path, maxFileBytes.text);
}
