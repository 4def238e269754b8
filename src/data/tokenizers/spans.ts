import { byteOfLetter } from "./byte-letters.ts";

/** Where a token stands in its text: from the first to behind the last UTF-16 unit, as `slice` takes them. */
export type Span = readonly [begin: number, end: number];

/** How the tokens of a vocabulary spell a text. */
export type Spelling =
  | {
      /** A letter a byte, as GPT-2. */
      readonly kind: "bytes";
      readonly prefixSpace: boolean;
      /** Whether white space at a token's ends is left out, as RoBERTa's. */
      readonly trimmed: boolean;
    }
  | {
      /** Letters, after normalization. */
      readonly kind: "letters";
      /** Whether normalization changes nothing but spaces. */
      readonly isPlain: boolean;
      /** Whether what stands for a space is put in front of a text, one that begins with a space too. */
      readonly isPrepended: boolean;
      /** What stands for a space, and is counted to the word behind it; undefined where spaces are in no token. */
      readonly space: string | undefined;
      /** Before the tokens that go on with a word. */
      readonly continuation: string | undefined;
    };

/** A token as it is spelled; undefined: unknown, so that it stands for some text it does not tell. */
export type Spelled = string | undefined;

/**
 * Where tokens stand in the text that they were made of.
 * @param tokens - of the whole text, in order
 * @param isKnown - whether a character by itself could have been a token: where a run of unknown ones ends
 */
export function tokenSpans(
  text: string,
  tokens: readonly Spelled[],
  spelling: Spelling,
  isKnown: (character: string) => boolean,
): Span[] {
  return spelling.kind === "bytes"
    ? byteSpans(text, tokens, spelling)
    : letterSpans(text, tokens, spelling, isKnown);
}

/** A token that ends within a character is said to end behind it. */
function byteSpans(
  text: string,
  tokens: readonly Spelled[],
  { prefixSpace, trimmed }: Extract<Spelling, { kind: "bytes" }>,
): Span[] {
  const isPrefixed = prefixSpace && text !== "" && !text.startsWith(" ");
  const begins = isPrefixed ? [0] : []; // of the character that each byte belongs to
  const ends = isPrefixed ? [0] : [];
  let at = 0;
  for (const character of text) {
    for (let byte = 0; byte < Buffer.byteLength(character); byte++) {
      begins.push(at);
      ends.push(at + character.length);
    }
    at += character.length;
  }
  let byte = 0;
  return tokens.map((token = "", index) => {
    const letters = [...token];
    const isBytes = letters.every((letter) => byteOfLetter.has(letter));
    const numBytes = isBytes ? letters.length : Buffer.byteLength(token); // a special token is spelled as it is
    const span: Span = [begins[byte] ?? at, ends[byte + numBytes - 1] ?? at];
    byte += numBytes;
    return trimmed ? trim(text, span, index === 0 && prefixSpace) : span;
  });
}

function trim(text: string, [begin, end]: Span, keepsPrefix: boolean): Span {
  const token = text.slice(begin, end);
  const leading = keepsPrefix ? 0 : token.length - token.replace(/^ +/, "").length;
  const trailing = token.length - token.replace(/ +$/, "").length;
  const from = Math.min(begin + leading, end);
  return [from, Math.max(end - trailing, from)];
}

/** One character of the text, as letters without case, accents and forms. */
interface Letter {
  readonly folded: string;
  /** Folded, an accent that stands alone is a space; it is none to those who split words there. */
  readonly isWhite: boolean;
  readonly span: Span;
}

/**
 * Normalization may change case, drop accents and marks and spread a ligature: both sides are compared without them, and what
 * the tokens do not have is passed over.
 */
function letterSpans(
  text: string,
  tokens: readonly Spelled[],
  { space, continuation, isPlain, isPrepended }: Extract<Spelling, { kind: "letters" }>,
  isKnown: (character: string) => boolean,
): Span[] {
  const isSpace =
    space === undefined ? ({ isWhite }: Letter) => isWhite : ({ folded }: Letter) => folded === " ";
  const letters = isPlain ? charactersOf(text) : lettersOf(text);
  const [first] = letters;
  if (isPrepended && first !== undefined) letters.unshift({ ...first, folded: " " });
  const reader = new LetterReader(text, letters, isSpace, isPlain ? (character) => character : fold);
  return tokens.map((token, index) => {
    if (token === undefined) return reader.span(() => reader.takeUnknown(isKnown));
    const byte = /^<0x([0-9A-F]{2})>$/.test(token);
    if (byte) return reader.span(() => reader.takeByte());
    const isPart = continuation !== undefined && token.startsWith(continuation);
    const letters = isPart ? token.slice(continuation.length) : token;
    // The one before the text, which the text itself does not have, is of its first character.
    if (index === 0 && letters === space && !reader.isAtSpace) return [0, reader.firstLength];
    return reader.span(() => {
      for (const character of letters) {
        if (character === space) reader.takeSpace();
        else reader.take(character);
      }
    });
  });
}

/** Goes through a text, letter by letter, as its tokens have them. */
class LetterReader {
  readonly #text: string;
  readonly #letters: readonly Letter[];
  readonly #isSpaceLetter: (letter: Letter) => boolean;
  readonly #fold: (character: string) => string;
  #next = 0;
  /** Of the letter that comes, what tokens before had of it: folded characters, or bytes. */
  #taken = 0;
  /** Where what is read now began and ends. */
  #begin: number | undefined;
  #end = 0;

  constructor(
    text: string,
    letters: readonly Letter[],
    isSpace: (letter: Letter) => boolean,
    fold: (character: string) => string,
  ) {
    this.#text = text;
    this.#letters = letters;
    this.#isSpaceLetter = isSpace;
    this.#fold = fold;
  }

  get firstLength(): number {
    return this.#letters[0]?.span[1] ?? 0;
  }

  get isAtSpace(): boolean {
    const letter = this.#letters[this.#next];
    return letter !== undefined && this.#isSpaceLetter(letter);
  }

  /** Where that stands which `read` takes. */
  span(read: () => void): Span {
    this.#begin = undefined;
    read();
    return [this.#begin ?? this.#end, this.#end];
  }

  /** One character of a token. */
  take(character: string): void {
    if (this.#fold(character) === "") this.#takeMark();
    for (const folded of this.#fold(character)) {
      while (
        this.#letters[this.#next] !== undefined &&
        !this.#letters[this.#next]?.folded.startsWith(folded, this.#taken)
      )
        this.#pass();
      this.#touch();
      this.#taken += folded.length;
      if (this.#taken >= (this.#letters[this.#next]?.folded.length ?? 0)) this.#pass();
    }
  }

  takeSpace(): void {
    if (!this.isAtSpace) return;
    this.#touch();
    this.#pass();
  }

  /** One byte of a character that the vocabulary lacks. */
  takeByte(): void {
    this.#touch();
    this.#taken++;
    const [begin, end] = this.#letters[this.#next]?.span ?? [0, 0];
    if (this.#taken >= Buffer.byteLength(this.#text.slice(begin, end))) this.#pass();
  }

  /** A word, or what there is of it up to something known. */
  takeUnknown(isKnown: (character: string) => boolean): void {
    while (this.isAtSpace) this.#pass();
    do {
      this.#touch();
      this.#pass();
    } while (this.#letters[this.#next] !== undefined && !this.isAtSpace && !isKnown(this.#character()));
  }

  /** Of an accent that stands alone, whose space was read before. */
  #takeMark(): void {
    const letter = this.#letters[this.#next - 1];
    if (letter === undefined || letter.folded !== " " || letter.isWhite) return;
    this.#begin ??= letter.span[0];
    this.#end = letter.span[1];
  }

  #touch(): void {
    const letter = this.#letters[this.#next];
    if (letter === undefined) return;
    this.#begin ??= letter.span[0];
    this.#end = letter.span[1];
  }

  #pass(): void {
    this.#next++;
    this.#taken = 0;
  }

  #character(): string {
    const [begin, end] = this.#letters[this.#next]?.span ?? [0, 0];
    return this.#text.slice(begin, end);
  }
}

function isWhite(character: string): boolean {
  return /^[\p{White_Space}\p{Cc}]$/u.test(character);
}

function charactersOf(text: string): Letter[] {
  let at = 0;
  return [...text].map((character) => {
    const begin = at;
    at += character.length;
    return { folded: character, isWhite: isWhite(character), span: [begin, at] };
  });
}

function lettersOf(text: string): Letter[] {
  const letters: Letter[] = [];
  let at = 0;
  for (const character of text) {
    const end = at + character.length;
    const folded = fold(character);
    const last = letters.at(-1);
    // A mark goes with the letter that it stands on.
    if (folded === "" && last !== undefined && /\p{M}/u.test(character)) {
      letters[letters.length - 1] = { ...last, span: [last.span[0], end] };
    } else if (folded !== "") {
      letters.push({ folded, isWhite: isWhite(character), span: [at, end] });
    }
    at = end;
  }
  return letters;
}

function fold(character: string): string {
  return character
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .toLowerCase()
    .normalize("NFKD")
    .replace(/\p{M}/gu, "");
}
