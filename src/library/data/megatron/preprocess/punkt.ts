import { join } from "node:path";
import { fileErrors, fileFailure } from "../../../../errors/index.ts";
import { maxFileBytes, readBoundedTextSync } from "../../../../errors/untrusted/index.ts";

/** NLTK's Punkt model of a language. Plain data. */
export interface PunktModel {
  /** Words that end with a period but no sentence, in lower case, without the period. */
  readonly abbreviations: ReadonlySet<string>;
  /** Pairs of words, joined by a tab, that a period between them does not separate. */
  readonly collocations: ReadonlySet<string>;
  /** Words that often begin a sentence. */
  readonly starters: ReadonlySet<string>;
  /** Letter cases in which each word was seen, and where: flags. */
  readonly cases: ReadonlyMap<string, number>;
}

// Flags of `cases`: at the beginning of a sentence, within one, or unknown.
const midUpper = 1 << 2;
const upper = (1 << 1) | midUpper | (1 << 3);
const beginLower = 1 << 4;
const lower = beginLower | (1 << 5) | (1 << 6);

/**
 * Reads a language of NLTK's `punkt_tab`, such as `nltk_data/tokenizers/punkt_tab/english`.
 * @throws {TroupeError} `DATA_UNREADABLE`
 */
export function readPunkt(folder: string): PunktModel {
  const linesOf = (name: string): string[] => {
    try {
      return readBoundedTextSync(join(folder, name), maxFileBytes.tokenizer).split("\n").filter(Boolean);
    } catch (cause) {
      throw unreadable(folder, `NLTK's ${name}`, fileFailure(cause), { cause });
    }
  };
  const cases = linesOf("ortho_context.tab").map((line): [string, number] => {
    const [word = "", flags = "0"] = line.split("\t");
    return [word, Number(flags)];
  });
  return {
    abbreviations: new Set(linesOf("abbrev_types.txt")),
    collocations: new Set(linesOf("collocations.tab")),
    starters: new Set(linesOf("sent_starters.txt")),
    cases: new Map(cases),
  };
}

const unreadable = fileErrors(
  "DATA_UNREADABLE",
  "preprocess",
  "the folder of a language in nltk_data/tokenizers/punkt_tab",
);

const inner = String.raw`[)";}\]*:@'({\[\u2018\u2019\u201c\u201d\u00ab\u00bb?!]`;
const marks = String.raw`(?:-{2,}|\.{2,}|(?:\.\s){2,}\.)`;
const begin = String.raw`[^("\x60{\[:;&#*@)}\]\-,]`;
const word = new RegExp(
  String.raw`${marks}|(?=${begin})\S+?(?=\s|$|${inner}|${marks}|,(?=$|\s|${inner}|${marks}))|\S`,
  "gu",
);
const possibleEnd = new RegExp(String.raw`[.?!](?=(${inner}|\s+(\S+)))`, "gu");
/** Megatron's variant that keeps newlines: matches the word before and the white space after; also a mark within a word. */
const possibleWhiteEnd = new RegExp(String.raw`(?<![^\s.?!])\S*[.?!]\s*(?=(${inner}|(\S+)))`, "gu");
/** Closing marks after a period that belong to the sentence before: from the start of the text to the end of any line. */
const closing = /(?<![\s\S])["')\]}\u2018\u2019\u201c\u201d\u00ab\u00bb]+?(?:\s+|(?=--)|$)/mu;

/**
 * Splits a text into sentences like NLTK's Punkt with the same model. Closing quotes and brackets belong to the sentence that
 * they close; white space between sentences belongs to none or, as with Megatron's `--keep-newlines`, to the one before.
 * @see Kiss and Strunk, Unsupervised Multilingual Sentence Boundary Detection (2006), section 4
 */
export function punktSentences(text: string, model: PunktModel, keepNewlines = false): string[] {
  const pieces = cut(text, model, keepNewlines ? possibleWhiteEnd : possibleEnd);
  const sentences: string[] = [];
  let skipped = 0;
  for (const [index, [from, to]] of pieces.entries()) {
    const next = pieces[index + 1];
    const own = text.slice(from + skipped, to);
    const close = next && closing.exec(text.slice(next[0], next[1]));
    if (next && close) {
      sentences.push(text.slice(from + skipped, next[0] + close[0].trimEnd().length));
      skipped = close[0].length;
      continue;
    }
    skipped = 0;
    if (own !== "") sentences.push(own);
  }
  return sentences;
}

/** Beginning and end of each sentence, without closing marks. */
function cut(text: string, model: PunktModel, ends: RegExp): [number, number][] {
  const pieces: [number, number][] = [];
  let begun = 0;
  for (const { end, next, context } of contextsIn(text, ends)) {
    if (!endsWithin(context, model)) continue;
    pieces.push([begun, end]);
    begun = next;
  }
  pieces.push([begun, text.trimEnd().length]);
  return pieces;
}

interface Context {
  /** End of the mark that may end a sentence, and the start of the text after it. */
  readonly end: number;
  readonly next: number;
  /** The word before the mark, the mark, and the text after it. */
  readonly context: string;
}

/** Marks that may end a sentence; of several after one word the last. */
function* contextsIn(text: string, ends: RegExp): Generator<Context> {
  let found: { readonly context: Context; readonly end: number } | undefined;
  let [from, to] = [0, 0];
  for (const match of text.matchAll(ends)) {
    const [mark, after = "", token] = match;
    const white = lastWhite(text.slice(to, match.index));
    const start = white > 0 ? to + white + 1 : from;
    if (found !== undefined && found.end <= start) yield found.context;
    [from, to] = [start, match.index];
    const end = match.index + mark.length;
    const next = token === undefined ? end : end + after.length - token.length;
    found = { context: { end, next, context: text.slice(from, to) + mark + after }, end: to };
  }
  if (found !== undefined) yield found.context;
}

function lastWhite(text: string): number {
  for (let at = text.length - 1; at >= 0; at--) if (/[ \t\n\r\v\f]/.test(text[at] as string)) return at;
  return 0;
}

/** A word of a context, and the conclusions about it. */
class Word {
  readonly text: string;
  readonly type: string;
  isEnd = false;
  isAbbreviation = false;
  isEllipsis = false;

  constructor(text: string, { abbreviations }: PunktModel) {
    this.text = text;
    this.type = /^-?[.,]?\d[\d,.-]*\.?$/u.test(text) ? "##number##" : text.toLowerCase();
    if (/^[.?!]$/.test(text)) this.isEnd = true;
    else if (/^\.\.+$/.test(text)) this.isEllipsis = true;
    else if (text.endsWith(".") && !text.endsWith("..")) {
      const bare = text.slice(0, -1).toLowerCase();
      this.isAbbreviation = abbreviations.has(bare) || abbreviations.has(bare.split("-").at(-1) as string);
      this.isEnd = !this.isAbbreviation;
    }
  }

  get withoutPeriod(): string {
    return this.type.length > 1 && this.type.endsWith(".") ? this.type.slice(0, -1) : this.type;
  }

  /** The word's form in the model. */
  get known(): string {
    return this.isEnd ? this.withoutPeriod : this.type;
  }

  get isInitial(): boolean {
    return /^[\p{L}\p{Nl}\p{No}_]\.$/u.test(this.text);
  }

  get isUpper(): boolean {
    return /^\p{Uppercase}/u.test(this.text);
  }

  get isLower(): boolean {
    return /^\p{Lowercase}/u.test(this.text);
  }
}

/** Whether a sentence ends in a context before its last word. */
function endsWithin(context: string, model: PunktModel): boolean {
  const words = context
    .split("\n")
    .flatMap((line) => Array.from(line.matchAll(word), ([text]) => new Word(text, model)));
  return words.some((each, index) => {
    const next = words[index + 1];
    if (next === undefined) return false;
    if (each.text.endsWith(".")) judge(each, next, model);
    return each.isEnd;
  });
}

/** Judges a period by the next word: some abbreviations end a sentence too, some initials and ordinals end none. */
function judge(each: Word, next: Word, model: PunktModel): void {
  const type = each.withoutPeriod;
  const deny = () => {
    [each.isEnd, each.isAbbreviation] = [false, true];
  };
  if (model.collocations.has(`${type}\t${next.known}`)) {
    deny();
    return;
  }
  const begins = beginsSentence(next, model);
  if ((each.isAbbreviation || each.isEllipsis) && !each.isInitial)
    if (begins === true || (next.isUpper && model.starters.has(next.known))) {
      each.isEnd = true;
      return;
    }
  if (!each.isInitial && type !== "##number##") return;
  const isNeverLower = ((model.cases.get(next.known) ?? 0) & lower) === 0;
  if (begins === false || (begins === undefined && each.isInitial && next.isUpper && isNeverLower)) deny();
}

/** Whether a word begins a sentence, by its case and those that it was seen in; undefined where these do not decide. */
function beginsSentence(next: Word, { cases }: PunktModel): boolean | undefined {
  if (/^[;:,.!?]$/.test(next.text)) return false;
  const seen = cases.get(next.known) ?? 0;
  if (next.isUpper && (seen & lower) !== 0 && (seen & midUpper) === 0) return true;
  if (next.isLower && ((seen & upper) !== 0 || (seen & beginLower) === 0)) return false;
  return undefined;
}
