import type { Tokenizer } from "./tokenizer.ts";

/** A tokenizer whose tokens are the 256 byte values of UTF-8: needs no vocabulary and encodes every text. */
export class ByteTokenizer implements Tokenizer {
  readonly vocabSize = 256;
  readonly spec = { kind: "byte" } as const;
  readonly legalCuts = "between-characters";

  encode(text: string): Uint8Array {
    return new TextEncoder().encode(text);
  }

  decode(tokens: Iterable<number>): string {
    // 0xff never occurs in UTF-8, so an invalid token becomes one replacement character.
    const bytes = Uint8Array.from(tokens, (token) => (token < 256 ? token : 0xff));
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
  }
}
