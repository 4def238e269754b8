import type { AlignedCharacter, AlignedText, Span } from "./aligned-text.ts";

/** How the tokens of a vocabulary spell a normalized text. */
export type Spelling =
  | {
      /** One letter per byte, as in GPT-2. */
      readonly kind: "bytes";
      readonly prefixSpace: boolean;
      /** Whether ranges exclude white space at a token's ends, as for RoBERTa. */
      readonly trimmed: boolean;
    }
  | {
      /** Letters as they are. */
      readonly kind: "letters";
      /** Prefix of tokens that continue a word; then white space is in no token. Undefined where it is in tokens. */
      readonly continuation: string | undefined;
    };

/** A token's spelling; undefined for an unknown one, which may stand for any text. */
export type Spelled = string | undefined;

/**
 * Finds the ranges of tokens in the text that they were made of.
 * @param letters - of the text, normalized, as the tokens spell them
 * @param tokens - of the text, in order
 * @param isKnown - whether a character by itself could have been a token: ends a run of unknown ones
 */
export function tokenSpans(
  letters: AlignedText,
  tokens: readonly Spelled[],
  spelling: Spelling,
  isKnown: (character: string) => boolean,
): Span[] {
  return spelling.kind === "bytes"
    ? byteSpans(letters, tokens, spelling)
    : letterSpans(letters, tokens, spelling, isKnown);
}

/** A token that ends within a character gets a range that ends after it. */
function byteSpans(
  characters: AlignedText,
  tokens: readonly Spelled[],
  { prefixSpace, trimmed }: Extract<Spelling, { kind: "bytes" }>,
): Span[] {
  const begins: number[] = []; // of what each byte's character was made of
  const ends: number[] = [];
  for (const { character, span } of characters) {
    for (let byte = 0; byte < Buffer.byteLength(character); byte++) {
      begins.push(span[0]);
      ends.push(span[1]);
    }
  }
  const at = characters.at(-1)?.span[1] ?? 0;
  let byte = 0;
  return tokens.map((token = "", index) => {
    const letters = [...token];
    const isBytes = letters.every((letter) => byteOfLetter.has(letter));
    const numBytes = isBytes ? letters.length : Buffer.byteLength(token); // a special token is spelled as it is
    const span: Span = [begins[byte] ?? at, ends[byte + numBytes - 1] ?? at];
    byte += numBytes;
    return trimmed ? trim(token, span, prefixSpace && (index === 0 || span[0] === 0)) : span;
  });
}

/** Trims white space from a token's range; a space that was inserted at the start of a text is not counted. */
function trim(token: string, [begin, end]: Span, isPrefixed: boolean): Span {
  const ink = token.replace(/^[\u0120\s]+/, "");
  const from = Math.min(begin + Math.max(0, token.length - ink.length - Number(isPrefixed)), end);
  if (ink === "" && token !== "") return [from, from];
  const trailing = ink.length - ink.replace(/[\u0120\s]+$/, "").length;
  return [from, Math.max(end - trailing, from)];
}

/** Ranges from the first letter of a token to its last; letters in no token are skipped. */
function letterSpans(
  letters: AlignedText,
  tokens: readonly Spelled[],
  { continuation }: Extract<Spelling, { kind: "letters" }>,
  isKnown: (character: string) => boolean,
): Span[] {
  const reader = new LetterReader(letters, continuation !== undefined);
  return tokens.map((token) => {
    if (token === undefined) return reader.span(() => reader.takeUnknown(isKnown));
    if (/^<0x[0-9A-F]{2}>$/.test(token)) return reader.span(() => reader.takeByte());
    const isPart = continuation !== undefined && token.startsWith(continuation);
    const spelled = isPart ? token.slice(continuation.length) : token;
    return reader.span(() => {
      for (const character of spelled) reader.take(character);
    });
  });
}

/** Reads a text letter by letter, as its tokens spell it. */
class LetterReader {
  readonly #letters: AlignedText;
  readonly #passesSpace: boolean;
  #next = 0;
  /** Bytes of the next letter that earlier tokens have used. */
  #taken = 0;
  /** Range of the letters that are being read. */
  #begin: number | undefined;
  #end = 0;

  constructor(letters: AlignedText, passesSpace: boolean) {
    this.#letters = letters;
    this.#passesSpace = passesSpace;
  }

  /** Returns the range of the letters that `read` takes. */
  span(read: () => void): Span {
    this.#begin = undefined;
    read();
    return [this.#begin ?? this.#end, this.#end];
  }

  /** Reads one character of a token. */
  take(character: string): void {
    while (this.#letter !== undefined && this.#letter.character !== character) this.#next++;
    this.#touch();
    this.#pass();
  }

  /** Reads one byte of a character that the vocabulary lacks. */
  takeByte(): void {
    this.#touch();
    this.#taken++;
    if (this.#taken >= Buffer.byteLength(this.#letter?.character ?? "")) this.#pass();
  }

  /** Reads a word, or its part up to a known character. */
  takeUnknown(isKnown: (character: string) => boolean): void {
    while (this.#isAtSpace) this.#pass();
    do {
      this.#touch();
      this.#pass();
    } while (this.#letter !== undefined && !this.#isAtSpace && !isKnown(this.#letter.character));
  }

  get #letter(): AlignedCharacter | undefined {
    return this.#letters[this.#next];
  }

  get #isAtSpace(): boolean {
    return this.#passesSpace && /^[\p{White_Space}\p{Cc}]$/u.test(this.#letter?.character ?? "");
  }

  #touch(): void {
    if (this.#letter === undefined) return;
    const [begin, end] = this.#letter.span;
    this.#begin ??= begin;
    this.#end = end;
  }

  #pass(): void {
    this.#next++;
    this.#taken = 0;
  }
}

const byteOfLetter: ReadonlyMap<string, number> = new Map(byteLetters());

/**
 * GPT-2's letters: a printable character for each byte, in their order, so that a vocabulary of bytes can be written as text.
 * Source: Radford et al. 2019, the published encoder.
 */
export function byteLetters(): [letter: string, byte: number][] {
  const isPrintable = (byte: number) =>
    (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || (byte >= 0xae && byte <= 0xff);
  let others = 0;
  return Array.from({ length: 256 }, (_, byte) => [
    String.fromCodePoint(isPrintable(byte) ? byte : 256 + others++),
    byte,
  ]);
}
