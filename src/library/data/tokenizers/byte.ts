import type { Tokenizer } from "./tokenizer.ts";

/** Tokens are the 256 byte values of the UTF-8 text: needs no vocabulary and knows every file. */
export class ByteTokenizer implements Tokenizer {
  readonly vocabSize = 256;
  readonly spec = { kind: "byte" } as const;
  readonly legalCuts = "between-characters";

  encode(text: string): Uint8Array {
    return new TextEncoder().encode(text);
  }

  decode(tokens: Iterable<number>): string {
    // 0xff never occurs in UTF-8, so a foreign token becomes one replacement character.
    const bytes = Uint8Array.from(tokens, (token) => (token < 256 ? token : 0xff));
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
  }
}
