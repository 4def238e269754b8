import { describeValue } from "../../../errors/index.ts";
import { LinearPattern } from "../../../errors/untrusted/index.ts";
import { type AlignedCharacter, type AlignedText, type Made, madeOf, plain } from "./aligned-text.ts";
import { type BertNormalizer, bertLetters } from "./bert-words.ts";
import { literal } from "./gpt2-pieces.ts";
import { checkGrowth, longestOf } from "./growth.ts";
import { refusal } from "./refusal.ts";
import { normalForm } from "./unicode-forms.ts";

/** The normalizer in a `tokenizer.json`. */
export interface NormalizerJson extends BertNormalizer {
  readonly type?: string;
  readonly normalizers?: readonly NormalizerJson[];
  readonly prepend?: string;
  readonly content?: string;
  readonly pattern?: { readonly String?: string; readonly Regex?: string };
  readonly strip_left?: boolean;
  readonly strip_right?: boolean;
  readonly precompiled_charsmap?: string | null;
}

/** Normalizes a text and tracks the original range of each character. */
export type Normalizer = (text: AlignedText) => AlignedText;

/**
 * One step of a normalizer. @param longest - the most characters that it may make; a step that makes many at once
 * checks this first
 */
type Step = (text: AlignedText, longest: number) => AlignedText;

/**
 * Creates a normalizer.
 * @returns undefined for an unknown type
 * @throws {TroupeError} `TOKENIZER_INVALID` when it is applied to a text that it makes much longer
 */
export function normalizerOf(json: NormalizerJson | null): Normalizer | undefined {
  const steps = stepsOf(json).map(stepOf);
  if (steps.includes(undefined)) return undefined;
  return (text) => {
    const longest = longestOf(text.length);
    return (steps as Step[]).reduce((made, step) => {
      const next = step(made, longest);
      checkGrowth(next.length, longest);
      return next;
    }, text);
  };
}

/** The steps of nested sequences, in order. */
function stepsOf(json: NormalizerJson | null): NormalizerJson[] {
  if (json === null) return [];
  return json.type === "Sequence" ? (json.normalizers ?? []).flatMap(stepsOf) : [json];
}

function stepOf(json: NormalizerJson): Step | undefined {
  switch (json.type) {
    case "NFC":
    case "NFD":
    case "NFKC":
    case "NFKD": {
      const form = json.type;
      return (text, longest) => {
        checkGrowth(plain(text).normalize(form).length, 2 * longest);
        return madeOf(text, normalForm(plain(text), form));
      };
    }
    case "Nmt":
      return (text) =>
        mapped(
          text.filter(({ character }) => !droppedByNmt.test(character)),
          (character) => character.replace(spaceOfNmt, " "),
        );
    case "Precompiled": {
      const charsmap = new Charsmap(json.precompiled_charsmap ?? "");
      return (text, longest) => madeOf(text, byCharsmap(plain(text), charsmap, longest));
    }
    case "BertNormalizer":
      return (text) => mapped(text, (character) => bertLetters(character, json));
    case "Lowercase":
      return (text) => mapped(text, (character) => character.toLowerCase());
    case "StripAccents":
      return (text) => text.filter(({ character }) => !/\p{M}/u.test(character));
    case "Strip":
      return (text) => stripped(text, json);
    case "Prepend":
      return (text) => prepended(text, json.prepend ?? "");
    case "Replace":
      return replacer(json);
    default:
      return undefined;
  }
}

/** Characters that the Nmt normalization removes: control characters except those that separate lines and words. */
const droppedByNmt = /(?![\0\t\n\f\r])[\p{Cc}--[\u0080-\u008E\u0090-\u009E]]/v;
const spaceOfNmt = /[\t\n\f\r\u1680\u200B-\u200F\u2028\u2029\u2581\uFEFF\uFFFD]/u;

/** Replaces each character; the results have its range. */
function mapped(text: AlignedText, of: (character: string) => string): AlignedText {
  return text.flatMap(({ character, span }) =>
    Array.from(of(character), (made) => ({ character: made, span })),
  );
}

/** Returns `text` with a prefix, which gets its first character's range; an empty text stays empty. */
export function prepended(text: AlignedText, prefix: string): AlignedText {
  const [first] = text;
  if (first === undefined) return text;
  return [...Array.from(prefix, (character) => ({ ...first, character })), ...text];
}

function stripped(text: AlignedText, { strip_left, strip_right }: NormalizerJson): AlignedText {
  const isInk = ({ character }: AlignedCharacter) => !/\p{White_Space}/u.test(character);
  const begin = strip_left === true ? text.findIndex(isInk) : 0;
  const end = strip_right === true ? text.findLastIndex(isInk) + 1 : text.length;
  return begin < 0 ? [] : text.slice(begin, end);
}

/**
 * Makes a step that replaces a pattern; the replacement has the range of the match's last character.
 * @returns undefined where JavaScript cannot read the pattern
 */
function replacer({ pattern, content = "" }: NormalizerJson): Step | undefined {
  if (typeof content !== "string")
    throw refusal("the content of Replace to be a text", describeValue(content));
  const matcher = patternOf(pattern?.Regex ?? literal(pattern?.String ?? ""));
  if (matcher === undefined) return undefined;
  const characters = [...content];
  return (text, longest) => {
    const made: AlignedCharacter[] = [];
    let [next, unit] = [0, 0];
    const takeTo = (end: number): AlignedText => {
      const begin = next;
      for (; unit < end; next++) unit += (text[next] as AlignedCharacter).character.length;
      return text.slice(begin, next);
    };
    for (const { begin, end } of matcher.matches(plain(text))) {
      for (const character of takeTo(begin)) made.push(character);
      const last = takeTo(end).at(-1) ?? made.at(-1);
      checkGrowth(made.length + characters.length, longest);
      if (last !== undefined) made.push(...characters.map((character) => ({ ...last, character })));
    }
    return [...made, ...text.slice(next)];
  };
}

function patternOf(source: string): LinearPattern | undefined {
  try {
    return new LinearPattern(source);
  } catch {
    return undefined;
  }
}

/** Made once it is needed: the first of a process reads its rules for 18 ms, and every process of a run loads this module. */
let graphemes: Intl.Segmenter | undefined;
/** Longest grapheme in UTF-8; longer ones are looked up character by character. */
const LONGEST_GRAPHEME_BYTES = 5;

function byCharsmap(text: string, charsmap: Charsmap, longest: number): Made[] {
  const made: Made[] = [];
  graphemes ??= new Intl.Segmenter("en", { granularity: "grapheme" });
  for (const { segment } of graphemes.segment(text)) {
    checkGrowth(made.length, longest);
    const isShort = Buffer.byteLength(segment) <= LONGEST_GRAPHEME_BYTES;
    const whole = isShort ? charsmap.replacementOf(segment) : undefined;
    if (whole !== undefined) put(made, segment, whole);
    else
      for (const character of segment) put(made, character, charsmap.replacementOf(character) ?? character);
  }
  return made;
}

/** Replaces characters one by one; surplus new ones are inserted, surplus old ones removed after the last new one. */
function put(made: Made[], replaced: string, replacement: string): void {
  const numReplaced = [...replaced].length;
  const characters = [...replacement];
  made.push(...characters.map((character, index): Made => [character, index < numReplaced ? 0 : 1]));
  const last = made.at(-1);
  if (characters.length < numReplaced && last !== undefined)
    made[made.length - 1] = [last[0], last[1] + characters.length - numReplaced];
}

/**
 * The table of a SentencePiece model that says what its normalization makes of characters: a double-array trie over the bytes of what is
 * replaced, then what replaces it, one behind the other.
 * Source: Yata 2007 (the trie); `precompiled_charsmap` of SentencePiece's `normalizer_spec`.
 */
class Charsmap {
  readonly #units: Uint32Array;
  readonly #replacements: Buffer;

  /** @param base64 - `precompiled_charsmap` of a `tokenizer.json` */
  constructor(base64: string) {
    const bytes = Buffer.from(base64, "base64");
    const numUnits = bytes.length < LENGTH_BYTES ? 0 : bytes.readUInt32LE(0) / UNIT_BYTES;
    if (!(Number.isInteger(numUnits) && LENGTH_BYTES + numUnits * UNIT_BYTES <= bytes.length))
      throw refusal(
        "precompiled_charsmap: a table within its bytes",
        `${numUnits} units in ${bytes.length} bytes`,
      );
    this.#units = Uint32Array.from({ length: numUnits }, (_, unit) =>
      bytes.readUInt32LE(LENGTH_BYTES + unit * UNIT_BYTES),
    );
    this.#replacements = bytes.subarray(LENGTH_BYTES + numUnits * UNIT_BYTES);
  }

  /** Returns the replacement of the first characters of `text`, as few of them as the table has; undefined where it has none. */
  replacementOf(text: string): string | undefined {
    const [root = 0] = this.#units;
    let place = offsetOf(root);
    for (const byte of Buffer.from(text)) {
      place ^= byte;
      const unit = this.#units[place] ?? 0;
      if (byte === 0 || labelOf(unit) !== byte) return undefined;
      place ^= offsetOf(unit);
      if (endsKey(unit)) return this.#replacementAt((this.#units[place] ?? 0) & VALUE_BITS);
    }
    return undefined;
  }

  #replacementAt(begin: number): string {
    const end = this.#replacements.indexOf(0, begin);
    if (begin > this.#replacements.length || end < 0 || end - begin > MAX_REPLACEMENT_BYTES)
      throw refusal(
        `precompiled_charsmap: replacements of at most ${MAX_REPLACEMENT_BYTES} bytes, each with its end`,
        `${end - begin}`,
      );
    return this.#replacements.toString("utf8", begin, end);
  }
}

const [LENGTH_BYTES, UNIT_BYTES] = [4, 4];
/** The most bytes that replace one character; the longest in published tables has 55. */
const MAX_REPLACEMENT_BYTES = 256;
const VALUE_BITS = 0x7fffffff;

const labelOf = (unit: number): number => (unit & 0x800000ff) >>> 0;

const offsetOf = (unit: number): number => (unit >>> 10) << ((unit & 0x200) >>> 6);

const endsKey = (unit: number): boolean => (unit & 0x100) !== 0;
