import { constants } from "node:buffer";
import { availableParallelism } from "node:os";
import { TroupeError } from "../../../errors/index.ts";
import type { TokenArray } from "../tokenizers/token-dtype.ts";
import type { Tokenizer } from "../tokenizers/tokenizer.ts";
import { cutText } from "./cut-text.ts";
import { readBytes, readText, type TextFile } from "./text-source.ts";

/** A smaller text is encoded in the calling thread: starting a pool takes about as long as encoding it. */
const minPooledBytes = 4 << 20;
const partCharacters = 1 << 19;

/**
 * Encodes `files` in order and yields tokens in parts, as if the text had been encoded at once. Byte-pair encoding of a
 * large text runs in a pool of worker threads, at most two parts per thread in flight.
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
  if (pooled) yield* encodeInPool(parts, tokenizer);
  else for await (const part of parts) yield tokenizer.encode(part);
}

async function* encodeInPool(parts: AsyncIterable<string>, tokenizer: Tokenizer): AsyncGenerator<TokenArray> {
  const numThreads = Math.min(availableParallelism(), 16);
  const { Piscina } = await import("piscina");
  const pool = new Piscina<string, TokenArray>({
    filename: new URL("./encode-worker.ts", import.meta.url).href,
    // Threads that block in Atomics.wait hold up the teardown of an addon loaded in the process.
    atomics: "async",
    minThreads: numThreads,
    maxThreads: numThreads,
    workerData: { spec: tokenizer.spec },
  });
  const inFlight: Promise<TokenArray>[] = [];
  try {
    for await (const part of parts) {
      const encoded = pool.run(part);
      // It may never be awaited; the first failure is reported.
      encoded.catch(() => {});
      inFlight.push(encoded);
      if (inFlight.length >= 2 * numThreads) yield await (inFlight.shift() as Promise<TokenArray>);
    }
    for (const encoded of inFlight) yield await encoded;
  } finally {
    await pool.destroy();
  }
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
