import { TroupeError } from "../../../errors/index.ts";
import { newTokenArray, type TokenArray, tokenDType } from "./token-dtype.ts";
import type { Tokenizer, TokenizerSpec } from "./tokenizer.ts";

const numCodePoints = 0x110000;

/** Collects the distinct characters (code points) of a text that arrives in parts, for a {@link CharacterTokenizer}. */
export class CharacterSet {
  readonly #seen = new Uint8Array(numCodePoints);

  add(text: string): void {
    for (let index = 0; index < text.length; ) {
      const codePoint = text.codePointAt(index) as number;
      this.#seen[codePoint] = 1;
      index += codePoint > 0xffff ? 2 : 1;
    }
  }

  /** Returns every added character once, in the order of code points. */
  toString(): string {
    const characters: string[] = [];
    for (let codePoint = 0; codePoint < numCodePoints; codePoint++) {
      if (this.#seen[codePoint] === 1) characters.push(String.fromCodePoint(codePoint));
    }
    return characters.join("");
  }
}

/** A tokenizer with one token per character (code point); a character's index in `characters` is its token. */
export class CharacterTokenizer implements Tokenizer {
  readonly vocabSize: number;
  readonly spec: Extract<TokenizerSpec, { kind: "character" }>;
  readonly legalCuts = "between-characters";
  readonly #characters: readonly string[];
  /** Token of each code point, -1 where there is none; up to the largest known code point. */
  readonly #tokens: Int32Array;

  /**
   * @param characters - every character of the vocabulary once, in the order of tokens
   * @throws {TroupeError} `TOKENIZER_INVALID` for an empty vocabulary, one with a repeated character or with half
   * of a surrogate pair
   */
  constructor(characters: string) {
    this.#characters = Array.from(characters);
    if (this.#characters.length === 0 || !characters.isWellFormed())
      throw new TroupeError("TOKENIZER_INVALID", {
        where: "character tokenizer",
        expected: "a well-formed, non-empty vocabulary",
        got: JSON.stringify(characters),
      });
    const codePoints = this.#characters.map((character) => character.codePointAt(0) as number);
    this.#tokens = new Int32Array(codePoints.reduce((a, b) => Math.max(a, b)) + 1).fill(-1);
    for (const [token, codePoint] of codePoints.entries()) {
      if (this.#tokens[codePoint] !== -1)
        throw new TroupeError("TOKENIZER_INVALID", {
          where: "character tokenizer",
          expected: "every character once",
          got: `${name(codePoint)} twice`,
          fields: { codePoint },
        });
      this.#tokens[codePoint] = token;
    }
    this.vocabSize = this.#characters.length;
    this.spec = { kind: "character", characters };
  }

  encode(text: string): TokenArray {
    const tokens = newTokenArray(tokenDType(this.vocabSize), text.length);
    let numTokens = 0;
    for (let index = 0; index < text.length; ) {
      const codePoint = text.codePointAt(index) as number;
      const token = this.#tokens[codePoint] ?? -1;
      if (token < 0)
        throw unknownCharacter(codePoint, text.slice(Math.max(0, index - 20), index + 20), this.vocabSize);
      tokens[numTokens++] = token;
      index += codePoint > 0xffff ? 2 : 1;
    }
    return tokens.subarray(0, numTokens);
  }

  decode(tokens: Iterable<number>): string {
    return Array.from(tokens, (token) => this.#characters[token] ?? "\uFFFD").join("");
  }
}

function unknownCharacter(codePoint: number, context: string, vocabSize: number): TroupeError {
  return new TroupeError("TOKENIZER_UNKNOWN_CHARACTER", {
    where: "character tokenizer",
    expected: `the ${vocabSize} characters of the vocabulary`,
    got: `${name(codePoint)} in ${JSON.stringify(context)}`,
    hint: "train a new vocabulary on this text, or use the byte tokenizer",
    fields: { codePoint, context },
  });
}

function name(codePoint: number): string {
  const hex = codePoint.toString(16).toUpperCase().padStart(4, "0");
  return `${JSON.stringify(String.fromCodePoint(codePoint))} (U+${hex})`;
}
