import { literal } from "./gpt2-pieces.ts";
import type { TokenizerJson } from "./tokenizer-json.ts";

/** The character for a space in front of a word. */
export const WORD_BEGIN = "\u2581";
/** A model of the package, by its public fields; its declarations are not found by Node's rules. */
export interface Model {
  readonly vocab: string[];
  readonly tokens_to_ids: Map<string, number>;
  readonly unk_token_id?: number | undefined;
  readonly end_of_word_suffix?: string | undefined;
  /** Whether neighbouring unknown tokens of a piece are still to become one. */
  readonly fuse_unk: boolean;
  encode(pieces: readonly string[]): string[];
}

/** Extra cost of an unknown character, relative to the least likely token. */
const UNKNOWN_PENALTY = 10;

/** The likeliest way to a position where a token can end. */
interface Best {
  logProbability: number;
  /** Start of the last token on that way. */
  begin: number;
}

/**
 * SentencePiece's unigram model: of all ways to cut a word into tokens of the vocabulary, the likeliest one, found by
 * Viterbi's algorithm. Of equally likely ways it takes the same one as Hugging Face's tokenizers: at each position
 * where tokens end, the first found from the left. The class of this name in the package leaves words together, and
 * chooses differently. Source: Kudo 2018, section 3.2.
 */
export class UnigramModel implements Model {
  readonly vocab: string[];
  readonly tokens_to_ids: Map<string, number>;
  readonly unk_token_id: number | undefined;
  readonly fuse_unk = false;
  readonly #logProbabilities = new Map<string, number>();
  readonly #unknown: number;
  /** Length of the longest token in characters: longer substrings are not looked up. */
  readonly #longest: number;
  readonly #wordsOf: (piece: string) => readonly string[];
  /** Whether unknown text is spelled by the tokens of its bytes. */
  readonly #hasBytes: boolean;

  constructor({ model: { vocab, unk_id: unknown, byte_fallback }, pre_tokenizer }: TokenizerJson) {
    this.#hasBytes = byte_fallback === true;
    const scores = vocab as readonly (readonly [token: string, logProbability: number])[];
    this.vocab = scores.map(([token]) => token);
    this.tokens_to_ids = new Map(this.vocab.map((token, id) => [token, id]));
    this.unk_token_id = unknown ?? undefined;
    let [least, longest] = [Number.POSITIVE_INFINITY, 1];
    for (const [token, score] of scores) {
      const logProbability = asTheyRead(score);
      this.#logProbabilities.set(token, logProbability);
      least = Math.min(least, logProbability);
      longest = Math.max(longest, [...token].length);
    }
    this.#unknown = least - UNKNOWN_PENALTY;
    this.#longest = longest;
    const { type, split, replacement = WORD_BEGIN } = pre_tokenizer ?? {};
    const beforeWord = new RegExp(`(?=${literal(replacement)})`, "u");
    this.#wordsOf = (piece) => (type === "Metaspace" && split !== false ? piece.split(beforeWord) : [piece]);
  }

  /** Returns the tokens of some pieces of text, in order; characters that are in no token stand for themselves, or their bytes do. */
  encode(pieces: readonly string[]): string[] {
    return pieces
      .flatMap((piece) => this.#wordsOf(piece))
      .flatMap((word) => this.#fused(this.#encodeWord(word)))
      .flatMap((token) => (this.#hasBytes ? this.#bytesOf(token) : [token]));
  }

  /** Makes one of neighbouring unknown tokens. */
  #fused(tokens: readonly string[]): string[] {
    const isUnknown = (token: string | undefined) =>
      token !== undefined && (this.tokens_to_ids.get(token) ?? this.unk_token_id) === this.unk_token_id;
    const fused: string[] = [];
    for (const [index, token] of tokens.entries())
      if (isUnknown(token) && isUnknown(tokens[index - 1])) fused.push((fused.pop() as string) + token);
      else fused.push(token);
    return fused;
  }

  /** The tokens of an unknown token's bytes if the vocabulary has all of them. */
  #bytesOf(token: string): readonly string[] {
    if (this.tokens_to_ids.has(token)) return [token];
    const hex = [...Buffer.from(token)].map((byte) => byte.toString(16).toUpperCase().padStart(2, "0"));
    const bytes = hex.map((digits) => `<0x${digits}>`);
    return bytes.every((byte) => this.tokens_to_ids.has(byte)) ? bytes : [token];
  }

  #encodeWord(word: string): string[] {
    const characters = [...word];
    const best: (Best | undefined)[] = [{ logProbability: 0, begin: 0 }];
    for (let begin = 0; begin < characters.length; begin++) this.#extend(characters, begin, best);
    const tokens: string[] = [];
    for (let end = characters.length; end > 0; ) {
      const { begin } = best[end] as Best;
      tokens.push(characters.slice(begin, end).join(""));
      end = begin;
    }
    return tokens.reverse();
  }

  #extend(characters: readonly string[], begin: number, best: (Best | undefined)[]): void {
    const { logProbability: before } = best[begin] as Best;
    const offer = (end: number, logProbability: number) => {
      const known = best[end];
      if (known === undefined || logProbability > known.logProbability) best[end] = { logProbability, begin };
    };
    let isKnown = false;
    let token = "";
    const furthest = Math.min(characters.length, begin + this.#longest);
    for (let end = begin + 1; end <= furthest; end++) {
      token += characters[end - 1];
      const logProbability = this.#logProbabilities.get(token);
      if (logProbability === undefined) continue;
      offer(end, logProbability + before);
      isKnown ||= end === begin + 1;
    }
    if (!isKnown) offer(begin + 1, this.#unknown + before);
  }
}

/**
 * Reads a number as Hugging Face's tokenizers read it from JSON: its digits as an integer, divided by a power of ten,
 * which may differ from the nearest double by one step. This can decide between two cuts of almost equal likelihood.
 */
function asTheyRead(value: number): number {
  const [, sign = "", whole = "", fraction = ""] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(String(value)) ?? [];
  const magnitude = Number(whole + fraction) / 10 ** fraction.length;
  if (whole === "") return value; // written with an exponent
  return sign === "-" ? -magnitude : magnitude;
}
