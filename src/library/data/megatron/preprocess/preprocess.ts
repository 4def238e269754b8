import { availableParallelism } from "node:os";
import { fileErrors, fileFailure, TroupeError } from "../../../../errors/index.ts";
import { readLines } from "../../formats/index.ts";
import { mapInPool } from "../../map-in-pool.ts";
import type { Tokenizer, TokenizerSpec } from "../../tokenizers/tokenizer.ts";
import type { IndexedFormat } from "../indexed-dataset.ts";
import { IndexedWriter, indexedDTypeFor } from "../indexed-writer.ts";
import type { PunktModel } from "./punkt.ts";

/** Options of {@link preprocess}. */
export interface PreprocessOptions {
  /** A file of JSON lines, one document each. */
  readonly input: string;
  /** Text fields of a document; each becomes a dataset. */
  readonly keys: readonly string[];
  /** The datasets are named `PREFIX_KEY_document` or `PREFIX_KEY_sentence`. */
  readonly outputPrefix: string;
  readonly tokenizer: Tokenizer;
  /**
   * Size of the vocabulary, which decides whether a token takes two bytes or four. Default: the tokenizer's. Megatron also counts
   * the tokens that its tokenizer adds to the file; see `t5Vocabulary`.
   */
  readonly vocabSize?: number;
  /** A token appended to each document. Default: none. */
  readonly endOfDocument?: number;
  /**
   * Makes each sentence a sequence, found by Unicode's rule (UAX 29) for a language, or by NLTK's Punkt with its model of a language,
   * as in Megatron. Default: a document is one sequence.
   */
  readonly sentencesOf?: string | PunktModel;
  /** With `sentencesOf`, whether a sentence keeps the white space after it, such as newlines; otherwise it is dropped. */
  readonly keepNewlines?: boolean;
  readonly format?: IndexedFormat;
  /** Number of threads. Default: one per core. */
  readonly workers?: number;
  /** Called from time to time with the progress so far. */
  onProgress?(done: PreprocessDone): void;
}

/** Progress of preprocessing. */
export interface PreprocessDone {
  readonly documents: number;
  readonly tokens: number;
  /** Bytes of the input. */
  readonly bytes: number;
}

/** Options for a worker thread; plain data. */
export interface PreprocessPlan {
  readonly spec: TokenizerSpec;
  readonly keys: readonly string[];
  readonly endOfDocument: number | undefined;
  readonly sentencesOf: string | PunktModel | undefined;
  readonly keepNewlines: boolean;
}

/** Lines for one task of a worker. */
export interface Lines {
  readonly first: number;
  readonly texts: readonly string[];
}

/** The sequences of each line's document, for each key; empty for a blank line. */
export type EncodedLines = readonly (readonly (readonly Int32Array[])[])[];

/** An invalid line. Returned instead of thrown, since an error loses its fields between threads. */
export interface RefusedLine {
  readonly line: number;
  readonly expected: string;
  readonly got: string;
}

const linesAtOnce = 64;
const charactersAtOnce = 1 << 20;

/**
 * Tokenizes a corpus on all cores into indexed datasets, in the order of its lines for any number of threads. The datasets' files
 * appear once all are complete.
 * @returns what was done, and the datasets' prefixes
 * @throws {TroupeError} `DATA_UNREADABLE` for a line that is not JSON or lacks the text, with its number; errors of the tokenizer
 */
export async function preprocess(
  options: PreprocessOptions,
): Promise<PreprocessDone & { readonly prefixes: readonly string[] }> {
  const { input, keys, outputPrefix, tokenizer, endOfDocument, sentencesOf, format, onProgress } = options;
  const { keepNewlines = false } = options;
  const level = sentencesOf === undefined ? "document" : "sentence";
  const prefixes = keys.map((key) => `${outputPrefix}_${key}_${level}`);
  using drafts = new DisposableStack();
  const writers = prefixes.map((prefix) =>
    drafts.use(new IndexedWriter(prefix, indexedDTypeFor(options.vocabSize ?? tokenizer.vocabSize), format)),
  );
  const plan: PreprocessPlan = { spec: tokenizer.spec, keys, endOfDocument, sentencesOf, keepNewlines };
  const done = { documents: 0, tokens: 0, bytes: 0 };
  const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
  const filename = new URL(`./preprocess-worker.${extension}`, import.meta.url).href;
  const pool = { filename, workerData: plan, numThreads: options.workers ?? availableParallelism() };
  const mapped = mapInPool<Lines, EncodedLines | RefusedLine>(linesOf(input), pool);
  for await (const { part: lines, result: encoded } of mapped) {
    if ("line" in encoded) throw refused(encoded);
    for (const [i, ofKeys] of encoded.entries()) {
      for (const [k, sequences] of ofKeys.entries())
        done.tokens += append(writers[k] as IndexedWriter, sequences);
      if (ofKeys.length > 0) done.documents += 1;
      done.bytes += Buffer.byteLength(lines.texts[i] as string) + 1;
    }
    onProgress?.(done);
  }
  for (const writer of writers) writer.finish();
  return { ...done, prefixes };
}

/** An empty document is not added. */
function append(writer: IndexedWriter, sequences: readonly Int32Array[]): number {
  let numTokens = 0;
  for (const sequence of sequences) {
    writer.addSequence(sequence);
    numTokens += sequence.length;
  }
  if (sequences.length > 0) writer.endDocument();
  return numTokens;
}

async function* linesOf(path: string): AsyncGenerator<Lines> {
  let [first, number, characters] = [1, 0, 0];
  let texts: string[] = [];
  try {
    for await (const text of readLines(path)) {
      number += 1;
      texts.push(text);
      characters += text.length;
      if (texts.length < linesAtOnce && characters < charactersAtOnce) continue;
      yield { first, texts };
      [first, texts, characters] = [number + 1, [], 0];
    }
  } catch (cause) {
    throw unreadable(path, cause);
  }
  if (texts.length > 0) yield { first, texts };
}

function unreadable(path: string, cause: unknown): TroupeError {
  const refuse = fileErrors("DATA_UNREADABLE", "preprocess", undefined, "at");
  return refuse(path, "a readable file", fileFailure(cause), { cause });
}

function refused({ line, expected, got }: RefusedLine): TroupeError {
  return new TroupeError("DATA_UNREADABLE", {
    where: "preprocess",
    expected: `${expected} in line ${line}`,
    got,
    hint: "one JSON document a line",
    fields: { line },
  });
}
