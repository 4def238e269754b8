import { workerData } from "node:worker_threads";
import { isRecord } from "../../../../errors/index.ts";
import { tokenizerFromSpec } from "../../tokenizers/load.ts";
import type { Tokenizer } from "../../tokenizers/tokenizer.ts";
import type { EncodedLines, Lines, PreprocessPlan, RefusedLine } from "./preprocess.ts";
import { punktSentences } from "./punkt.ts";

const { spec, keys, endOfDocument, sentencesOf, keepNewlines } = workerData as PreprocessPlan;
/** This thread's tokenizer, built for its first lines. */
let tokenizer: Tokenizer | undefined;
const segmenter =
  typeof sentencesOf === "string" ? new Intl.Segmenter(sentencesOf, { granularity: "sentence" }) : undefined;

/** Encodes some lines of a corpus, in a thread of the pool of `preprocess`. */
export default function encodeLines({ first, texts }: Lines): EncodedLines | RefusedLine {
  const encoded: Int32Array[][][] = [];
  for (const [i, text] of texts.entries()) {
    const document = parse(text);
    if (document === null)
      return { line: first + i, expected: "one JSON object", got: JSON.stringify(text.slice(0, 40)) };
    const lacking = keys.find((key) => document !== undefined && typeof document[key] !== "string");
    if (lacking !== undefined) {
      const got = `${typeof document?.[lacking]}`;
      return { line: first + i, expected: `text under ${JSON.stringify(lacking)}`, got };
    }
    encoded.push(document === undefined ? [] : keys.map((key) => encode(document[key] as string)));
  }
  return encoded;
}

type Document = Readonly<Record<string, unknown>>;

/** Parses a document; undefined for a blank line, null for an invalid one. */
function parse(line: string): Document | undefined | null {
  if (line.trim() === "") return undefined;
  try {
    const document: unknown = JSON.parse(line);
    return isRecord(document) ? document : null;
  } catch {
    return null;
  }
}

function encode(text: string): Int32Array[] {
  tokenizer ??= tokenizerFromSpec(spec);
  const sequences: Int32Array[] = [];
  for (const part of partsOf(text)) {
    const tokens = tokenizer.encode(part);
    if (tokens.length > 0) sequences.push(Int32Array.from(tokens));
  }
  const last = sequences.at(-1);
  if (last !== undefined && endOfDocument !== undefined) {
    const ended = new Int32Array(last.length + 1);
    ended.set(last);
    ended[last.length] = endOfDocument;
    sequences[sequences.length - 1] = ended;
  }
  return sequences;
}

function partsOf(text: string): readonly string[] {
  if (segmenter !== undefined) return unicodeSentences(text, segmenter);
  return typeof sentencesOf === "object" ? punktSentences(text, sentencesOf, keepNewlines) : [text];
}

/**
 * The rule makes an empty line a sentence of its own; here it is dropped, or belongs to the sentence before if newlines are kept.
 */
function unicodeSentences(text: string, rule: Intl.Segmenter): string[] {
  const sentences: string[] = [];
  for (const { segment } of rule.segment(text.trimEnd())) {
    if (!keepNewlines) sentences.push(segment.trim());
    else if (segment.trim() === "" && sentences.length > 0) sentences.push(`${sentences.pop()}${segment}`);
    else sentences.push(segment);
  }
  return sentences;
}
