import type { AlignedCharacter, AlignedText, Span } from "./aligned-text.ts";

/** How the tokens of a vocabulary spell a normalized text. */
export type Spelling =
  | {
      /** A letter a byte, as GPT-2. */
      readonly kind: "bytes";
      readonly prefixSpace: boolean;
      /** Whether white space at a token's ends is left out, as RoBERTa's. */
      readonly trimmed: boolean;
    }
  | {
      /** Letters as they are. */
      readonly kind: "letters";
      /** Before the tokens that go on with a word, between which white space is in none; undefined where it is in tokens. */
      readonly continuation: string | undefined;
    };

/** A token as it is spelled; undefined: unknown, so that it stands for some text it does not tell. */
export type Spelled = string | undefined;

/**
 * Where tokens stand in the text that they were made of.
 * @param letters - of the text, normalized, as the tokens spell them
 * @param tokens - of the whole text, in order
 * @param isKnown - whether a character by itself could have been a token: where a run of unknown ones ends
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

/** A token that ends within a character is said to end behind it. */
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

/** By the white space that the token is spelled with, of which one at the beginning of a text was put there. */
function trim(token: string, [begin, end]: Span, isPrefixed: boolean): Span {
  const ink = token.replace(/^[\u0120\s]+/, "");
  const from = Math.min(begin + Math.max(0, token.length - ink.length - Number(isPrefixed)), end);
  if (ink === "" && token !== "") return [from, from];
  const trailing = ink.length - ink.replace(/[\u0120\s]+$/, "").length;
  return [from, Math.max(end - trailing, from)];
}

/** A token is from the first of its letters to the last; what no token has is passed over. */
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

/** Goes through a text, letter by letter, as its tokens have them. */
class LetterReader {
  readonly #letters: AlignedText;
  readonly #passesSpace: boolean;
  #next = 0;
  /** Bytes of the letter that comes which tokens before had. */
  #taken = 0;
  /** Where what is read now began and ends. */
  #begin: number | undefined;
  #end = 0;

  constructor(letters: AlignedText, passesSpace: boolean) {
    this.#letters = letters;
    this.#passesSpace = passesSpace;
  }

  /** Where that stands which `read` takes. */
  span(read: () => void): Span {
    this.#begin = undefined;
    read();
    return [this.#begin ?? this.#end, this.#end];
  }

  /** One character of a token. */
  take(character: string): void {
    while (this.#letter !== undefined && this.#letter.character !== character) this.#next++;
    this.#touch();
    this.#pass();
  }

  /** One byte of a character that the vocabulary lacks. */
  takeByte(): void {
    this.#touch();
    this.#taken++;
    if (this.#taken >= Buffer.byteLength(this.#letter?.character ?? "")) this.#pass();
  }

  /** A word, or what there is of it up to something known. */
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

/**
 * GPT-2's letters: a printable character for each byte, so that a vocabulary of bytes can be written as text.
 * Source: Radford et al. 2019, the published encoder.
 */
const byteOfLetter: ReadonlyMap<string, number> = new Map(byteLetters());

function byteLetters(): [letter: string, byte: number][] {
  const isPrintable = (byte: number) =>
    (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || (byte >= 0xae && byte <= 0xff);
  let others = 0;
  return Array.from({ length: 256 }, (_, byte) => [
    String.fromCodePoint(isPrintable(byte) ? byte : 256 + others++),
    byte,
  ]);
}
