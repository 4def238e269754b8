import { constants } from "node:buffer";
import { availableParallelism } from "node:os";
import { TroupeError } from "../../../errors/index.ts";
import { mapInPool } from "../map-in-pool.ts";
import type { TokenArray } from "../tokenizers/token-dtype.ts";
import type { Tokenizer } from "../tokenizers/tokenizer.ts";
import { cutText } from "./cut-text.ts";
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
