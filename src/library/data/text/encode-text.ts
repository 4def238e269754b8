import { constants } from "node:buffer";
import { availableParallelism } from "node:os";
import { TroupeError } from "../../../errors/index.ts";
import { mapInPool } from "../map-in-pool.ts";
import type { TokenArray } from "../tokenizers/token-dtype.ts";
import type { LegalCuts, Tokenizer } from "../tokenizers/tokenizer.ts";
import { readBytes, readText, type TextFile } from "./text-source.ts";

/** A smaller text is encoded in the calling thread: starting a pool takes about as long as encoding it. */
const minPooledBytes = 4 << 20;
const partCharacters = 1 << 19;

/**
 * Encodes `files` in order and yields tokens in parts, as if the text had been encoded at once. Byte-pair encoding of a
 * large text runs in a pool of worker threads.
 * @throws {TroupeError} errors of reading and `Tokenizer.encode`; `DATA_TOO_LARGE` when the text must be encoded in one
 * piece and does not fit in one string
 */
export async function* encodeText(
  files: readonly TextFile[],
  tokenizer: Tokenizer,
): AsyncGenerator<TokenArray> {
  if (tokenizer.spec.kind === "byte") {
    yield* readBytes(files);
    return;
  }
  const sizeBytes = files.reduce((sum, file) => sum + file.sizeBytes, 0);
  if (tokenizer.legalCuts === "nowhere" && sizeBytes > constants.MAX_STRING_LENGTH) throw tooLarge(sizeBytes);
  const parts = cutText(readText(files), tokenizer.legalCuts, partCharacters);
  const pooled = tokenizer.legalCuts === "before-whitespace" && sizeBytes >= minPooledBytes;
  if (!pooled) {
    for await (const part of parts) yield tokenizer.encode(part);
    return;
  }
  const filename = new URL("./encode-worker.ts", import.meta.url).href;
  const options = {
    filename,
    workerData: { spec: tokenizer.spec },
    numThreads: Math.min(availableParallelism(), 16),
  };
  for await (const { result } of mapInPool<string, TokenArray>(parts, options)) yield result;
}

function tooLarge(sizeBytes: number): TroupeError {
  return new TroupeError("DATA_TOO_LARGE", {
    where: "data",
    expected: `at most ${constants.MAX_STRING_LENGTH} bytes of text for a tokenizer that needs all of it at once`,
    got: `${sizeBytes}`,
    hint: "split the text, or use a tokenizer that splits words like GPT-2's",
    fields: { sizeBytes },
  });
}

/**
 * Regroups a text that arrives in parts into parts of at least `minCharacters` (the last may be shorter) that a
 * tokenizer may encode separately.
 * @param parts - the text; no part cuts a character in two
 * @param legalCuts - where the tokenizer allows a cut; "nowhere" gives a single part
 */
async function* cutText(
  parts: AsyncIterable<string>,
  legalCuts: LegalCuts,
  minCharacters: number,
): AsyncGenerator<string> {
  let held: string[] = [];
  let numHeld = 0;
  for await (const part of parts) {
    const cut = numHeld + part.length >= minCharacters ? lastLegalCut(part, legalCuts) : 0;
    if (cut > 0) {
      yield held.join("") + part.slice(0, cut);
      held = [];
      numHeld = 0;
    }
    held.push(part.slice(cut));
    numHeld += part.length - cut;
  }
  if (numHeld > 0) yield held.join("");
}

/** The last index at which `part` may be cut, possibly its end; 0 where there is none. */
function lastLegalCut(part: string, legalCuts: LegalCuts): number {
  if (legalCuts === "nowhere") return 0;
  if (legalCuts === "between-characters") return part.length;
  for (let index = part.length - 1; index > 0; index--) {
    if (isSpace(part, index) && !isSpace(part, index - 1)) return index;
  }
  return 0;
}

const isSpace = (text: string, index: number): boolean => /\s/u.test(text.charAt(index));
