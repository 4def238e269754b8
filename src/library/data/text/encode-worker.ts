import { workerData } from "node:worker_threads";
import { move } from "piscina";
import { tokenizerFromSpec } from "../tokenizers/load.ts";
import type { TokenArray } from "../tokenizers/token-dtype.ts";
import type { Tokenizer, TokenizerSpec } from "../tokenizers/tokenizer.ts";

/** This thread's tokenizer, built for its first part. */
let tokenizer: Tokenizer | undefined;

/** Encodes one part of a text, in a thread of the pool of `encodeText`, whose `workerData` describes the tokenizer. */
export default function encodePart(text: string): TokenArray {
  tokenizer ??= tokenizerFromSpec((workerData as { spec: TokenizerSpec }).spec);
  const tokens = tokenizer.encode(text);
  // Moving a view of a larger buffer would move all of it: copies the view instead.
  return move(
    tokens.byteLength === tokens.buffer.byteLength ? tokens : tokens.slice(),
  ) as unknown as TokenArray;
}
