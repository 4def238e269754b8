import { maxFileBytes, readBoundedText } from "../../../errors/untrusted/index.ts";
import { noteFile, type TokenArray } from "../../../library/data/index.ts";
import type { Examples } from "../task.ts";
import { textIn } from "./example.ts";
import { readSplits, recordFiles, recordsIn } from "./files.ts";

/** Share of the texts, or of a single text, that is held out at the end without a validation file. */
const HELD_OUT = 0.1;

/**
 * Reads texts for language modelling: files of records with `text`, a text per record, or `.txt`, a text per file. Without a
 * validation file the last tenth is held out.
 */
export async function readTexts(path: string): Promise<Examples<string>> {
  const examples = await readSplits(path, recordFiles("txt"), async (file) =>
    file.endsWith(".txt")
      ? [await readTextFile(file)]
      : (await recordsIn(file)).map((record, index) =>
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

/** Cuts a text's tokens into windows of `length`; a shorter rest is dropped, unless it is the only window. */
export function windowsOf(tokens: TokenArray, length: number): TokenArray[] {
  const count = Math.max(1, Math.floor(tokens.length / length));
  return Array.from({ length: count }, (_, index) => tokens.subarray(index * length, (index + 1) * length));
}

function readTextFile(path: string): Promise<string> {
  noteFile(path);
  return readBoundedText(path, maxFileBytes.text);
}
