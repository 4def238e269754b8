import type { Span } from "./aligned-text.ts";
import type { Spelled } from "./spans.ts";
import type { WordFinder } from "./word-finder.ts";

/** BERT's normalization of letters, as in a `tokenizer.json`. */
export interface BertNormalizer {
  readonly clean_text?: boolean;
  readonly handle_chinese_chars?: boolean;
  /** Left out or null: the same as `lowercase`. */
  readonly strip_accents?: boolean | null;
  readonly lowercase?: boolean;
}

/** A letter of a word, normalized, and the character of the text that it comes from. */
interface Letter {
  readonly letter: string;
  readonly span: Span;
}

/**
 * Finds the ranges of BERT tokens in their text, like Hugging Face's tokenizers: a piece from its first letter's character to its
 * last one's, an unknown word as one range. Removed accents and marks after the last letter are in no token.
 * @param tokens - of the text, in order
 * @param specials - finds special tokens that may occur in the text
 * @returns undefined where the tokens do not match the text's words
 */
export function bertSpans(
  text: string,
  tokens: readonly Spelled[],
  normalizer: BertNormalizer,
  { specials, continuation }: { readonly specials: WordFinder; readonly continuation: string },
): Span[] | undefined {
  const spans: Span[] = [];
  let next = 0;
  const isPart = () => tokens[next]?.startsWith(continuation) === true;
  for (const part of specials.partsOf(text)) {
    if (part.isWord) {
      spans.push(part.span);
      next++;
      continue;
    }
    for (const word of wordsOf(text, part.span, normalizer)) {
      let taken = 0;
      do {
        const token = next < tokens.length ? tokens[next] : "";
        const piece = taken > 0 ? token?.slice(continuation.length) : token;
        const length = piece === undefined ? word.length : [...piece].length;
        const letters = word.slice(taken, taken + length);
        if (piece !== undefined && (piece === "" || letters.map(({ letter }) => letter).join("") !== piece))
          return undefined;
        spans.push([(letters[0] as Letter).span[0], (letters.at(-1) as Letter).span[1]]);
        taken += length;
        next++;
      } while (taken < word.length && isPart());
      if (taken < word.length) return undefined;
    }
  }
  return next === tokens.length ? spans : undefined;
}

/** Splits a text into words: at white space; each punctuation mark and ideograph is a word of its own. */
function wordsOf(text: string, [begin, end]: Span, normalizer: BertNormalizer): Letter[][] {
  const words: Letter[][] = [];
  let word: Letter[] = [];
  const endWord = () => {
    if (word.length > 0) words.push(word);
    word = [];
  };
  let at = begin;
  for (const character of text.slice(begin, end)) {
    const span: Span = [at, at + character.length];
    at = span[1];
    const isApart = normalizer.handle_chinese_chars !== false && ideograph.test(character);
    for (const letter of bertLetters(character, normalizer)) {
      if (isApart || whiteSpace.test(letter) || punctuation.test(letter)) endWord();
      if (whiteSpace.test(letter)) continue;
      word.push({ letter, span });
      if (isApart || punctuation.test(letter)) endWord();
    }
  }
  endWord();
  return words;
}

function isDropped(character: string): boolean {
  return character === "\uFFFD" || (control.test(character) && !"\t\n\r".includes(character));
}

/** Returns BERT's normalization of a character. */
export function bertLetters(character: string, normalizer: BertNormalizer): string {
  const { clean_text, strip_accents, lowercase = true } = normalizer;
  if (clean_text !== false && isDropped(character)) return "";
  const plain = (strip_accents ?? lowercase) ? character.normalize("NFD").replace(/\p{Mn}/gu, "") : character;
  return lowercase ? plain.toLowerCase() : plain;
}

const whiteSpace = /\p{White_Space}/u;
const control = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}]/u;
const punctuation = /[!-/:-@[-`{-~\p{P}]/u;
/** The ranges in BERT's own tokenizer. */
const ideograph =
  /[\u4E00-\u9FFF\u3400-\u4DBF\uF900-\uFAFF\u{20000}-\u{2A6DF}\u{2A700}-\u{2B73F}\u{2B740}-\u{2B81F}\u{2B920}-\u{2CEAF}\u{2F800}-\u{2FA1F}]/u;
