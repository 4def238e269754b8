import { workerData } from "node:worker_threads";
import { move } from "piscina";
import { tokenizerFromSpec } from "../tokenizers/load.ts";
import type { TokenArray } from "../tokenizers/token-dtype.ts";
import type { Tokenizer, TokenizerSpec } from "../tokenizers/tokenizer.ts";

/** This thread's tokenizer, built at the first part. */
let tokenizer: Tokenizer | undefined;

/** Encodes one part of a text; runs in a thread of the pool of `encodeText`, whose `workerData` names the tokenizer. */
export default function encodePart(text: string): TokenArray {
  tokenizer ??= tokenizerFromSpec((workerData as { spec: TokenizerSpec }).spec);
  const tokens = tokenizer.encode(text);
  // A view of a larger buffer would carry all of it: move what is meant.
  return move(
    tokens.byteLength === tokens.buffer.byteLength ? tokens : tokens.slice(),
  ) as unknown as TokenArray;
}
