import { createReadStream } from "node:fs";
import { availableParallelism } from "node:os";
import { createInterface } from "node:readline";
import { fileFailure, TroupeError } from "../../../errors.ts";
import type { Tokenizer, TokenizerSpec } from "../../tokenizers/tokenizer.ts";
import type { IndexedFormat } from "../indexed-dataset.ts";
import { IndexedWriter, indexedDTypeFor } from "../indexed-writer.ts";
import type { PunktModel } from "./punkt.ts";

/** How a corpus is preprocessed. */
export interface PreprocessOptions {
  /** A file of JSON, one document a line. */
  readonly input: string;
  /** Fields of a document that hold text; each makes a dataset of its own. */
  readonly keys: readonly string[];
  /** `OUTPUT_KEY_document` or `OUTPUT_KEY_sentence` are the datasets' names. */
  readonly outputPrefix: string;
  readonly tokenizer: Tokenizer;
  /**
   * Tokens that the datasets are to have room for, which decides whether one takes two bytes or four: the tokenizer's unless told
   * otherwise. Megatron counts what its tokenizer adds to the file, too; see `t5Vocabulary`.
   */
  readonly vocabSize?: number;
  /** The token put behind each document, where one is. */
  readonly endOfDocument?: number;
  /**
   * Whose sentences become a sequence each, where documents are split: a language's by Unicode's rule (UAX 29), or those that NLTK's
   * Punkt finds, as Megatron has them, with what it learnt of a language.
   */
  readonly sentencesOf?: string | PunktModel;
  /** Whether what is white behind a sentence is of it, newlines above all; else of none. For documents that are split. */
  readonly keepNewlines?: boolean;
  readonly format?: IndexedFormat;
  /** Threads; one for each core unless said otherwise. */
  readonly workers?: number;
  /** Called now and then, with what is done so far. */
  onProgress?(done: PreprocessDone): void;
}

/** What has been preprocessed. */
export interface PreprocessDone {
  readonly documents: number;
  readonly tokens: number;
  /** Of the input. */
  readonly bytes: number;
}

/** What a worker thread is given of that; plain data. */
export interface PreprocessPlan {
  readonly spec: TokenizerSpec;
  readonly keys: readonly string[];
  readonly endOfDocument: number | undefined;
  readonly sentencesOf: string | PunktModel | undefined;
  readonly keepNewlines: boolean;
}

/** Lines that a worker takes at once. */
export interface Lines {
  readonly first: number;
  readonly texts: readonly string[];
}

/** Of each line, for each key, the sequences of its document; nothing of a blank one. */
export type EncodedLines = readonly (readonly (readonly Int32Array[])[])[];

/** A line that is no document: an error of its own would lose its fields between threads. */
export interface RefusedLine {
  readonly line: number;
  readonly expected: string;
  readonly got: string;
}

const linesAtOnce = 64;
const charactersAtOnce = 1 << 20;

/**
 * Tokenizes a corpus on all cores into indexed datasets, in the order of its lines however many threads there are. Nothing stands under
 * the datasets' names until all of them are whole.
 * @returns what was done, and the datasets' prefixes
 * @throws {TroupeError} `DATA_UNREADABLE` for a line that is no JSON or has no such text, named by its number; what the tokenizer throws
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
  for await (const { lines, encoded } of encodeInPool(linesOf(input), plan, options.workers)) {
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

/** A document of nothing is none. */
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
  const stream = createReadStream(path);
  const failed = new Promise<never>((_, reject) => stream.once("error", reject));
  failed.catch(() => {}); // thrown by whoever waits for a line
  try {
    const lines = createInterface({ input: stream, crlfDelay: Number.POSITIVE_INFINITY })[
      Symbol.asyncIterator
    ]();
    for (;;) {
      const { value: text, done } = await Promise.race([lines.next(), failed]);
      if (done) break;
      number += 1;
      texts.push(text);
      characters += text.length;
      if (texts.length < linesAtOnce && characters < charactersAtOnce) continue;
      yield { first, texts };
      [first, texts, characters] = [number + 1, [], 0];
    }
  } catch (cause) {
    throw new TroupeError(
      "DATA_UNREADABLE",
      { where: "preprocess", expected: `a readable file at ${path}`, got: fileFailure(cause) },
      { fields: { path }, cause },
    );
  } finally {
    stream.destroy();
  }
  if (texts.length > 0) yield { first, texts };
}

/** At most two pieces a thread are under way: what is read is never far ahead of what is written. */
async function* encodeInPool(
  pieces: AsyncIterable<Lines>,
  plan: PreprocessPlan,
  workers = availableParallelism(),
): AsyncGenerator<{ lines: Lines; encoded: EncodedLines }> {
  const { Piscina } = await import("piscina");
  const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
  const pool = new Piscina<Lines, EncodedLines | RefusedLine>({
    filename: new URL(`./preprocess-worker.${extension}`, import.meta.url).href,
    // Threads that block in Atomics.wait hold up the teardown of an addon loaded in the process.
    atomics: "async",
    minThreads: workers,
    maxThreads: workers,
    workerData: plan,
  });
  const underWay: { lines: Lines; answer: Promise<EncodedLines | RefusedLine> }[] = [];
  const next = async () => {
    const { lines, answer } = underWay.shift() as (typeof underWay)[number];
    const encoded = await answer;
    if ("line" in encoded) throw refused(encoded);
    return { lines, encoded };
  };
  try {
    for await (const lines of pieces) {
      const answer = pool.run(lines);
      // Its turn to be awaited may never come; the first failure is the one that is reported.
      answer.catch(() => {});
      underWay.push({ lines, answer });
      if (underWay.length >= 2 * workers) yield await next();
    }
    while (underWay.length > 0) yield await next();
  } finally {
    await pool.destroy();
  }
}

function refused({ line, expected, got }: RefusedLine): TroupeError {
  return new TroupeError(
    "DATA_UNREADABLE",
    { where: "preprocess", expected: `${expected} in line ${line}`, got, hint: "one JSON document a line" },
    { fields: { line } },
  );
}
