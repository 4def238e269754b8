import { AddedToken, Tokenizer } from "@huggingface/tokenizers";
import { TroupeError } from "../../../errors/index.ts";
import { LinearPattern, PatternRefused } from "../../../errors/untrusted/index.ts";
import { aligned, plain } from "./aligned-text.ts";
import { checkGrowth, longestOf } from "./growth.ts";
import { type NormalizerJson, normalizerOf } from "./normalizers.ts";
import { refusal } from "./refusal.ts";
import { asSplit, type SplitJson, splitPatterns, splitText } from "./splits.ts";
import type { TokenizerJson } from "./tokenizer-json.ts";
import { type Model, UnigramModel } from "./unigram.ts";
import { WordFinder } from "./word-finder.ts";

/**
 * Creates the engine for a `tokenizer.json`, with limits on the cost of a hostile one: patterns are matched in linear
 * time, and no step makes a text much longer.
 * @param json - checked by {@link checkTokenizerJson}
 * @throws {TroupeError} `TOKENIZER_INVALID` where the engine refuses it, or a pattern cannot be matched in linear time
 */
export function createEngine(json: TokenizerJson): Engine {
  try {
    return new Engine(json);
  } catch (cause) {
    if (cause instanceof TroupeError) throw cause;
    const { message } = cause as Error;
    throw refusal(
      "a tokenizer.json that @huggingface/tokenizers can run",
      `"${message.slice(0, 200)}"`,
      cause,
    );
  }
}

/** A normalizer, a pre-tokenizer or a decoder of the package, by its public fields and the method of its kind. */
interface Part {
  readonly config?: SplitJson & {
    readonly pattern?: { readonly Regex?: string };
    readonly content?: string;
  };
  readonly pattern?: RegExp;
  readonly normalizers?: readonly Part[];
  readonly tokenizers?: readonly Part[];
  readonly decoders?: readonly Part[];
  normalize?(text: string): string;
  pre_tokenize_text?(text: string, options: { readonly section_index: number }): string[];
  decode_chain?(tokens: readonly string[]): string[];
}

/** Makes texts, or tokens, of those before, which all together may be `longest`. `section`: place of the text among its parts. */
type Step = (
  texts: readonly string[],
  at: { readonly longest: number; readonly section: number },
) => readonly string[];

/** The parts of `@huggingface/tokenizers` at work for one `tokenizer.json`: neither a step nor all together make a text much longer. */
export class Engine {
  readonly model: Model;
  readonly #normalize: Step;
  readonly #split: Step;
  readonly #join: Step | undefined;
  /** Added tokens by their content, and by its normalization where they are searched for in normalized texts. */
  readonly #added = new Map<string, AddedToken>();
  readonly #asWritten: WordFinder;
  readonly #normalized: WordFinder;

  /** @param json - as `createEngine` takes it */
  constructor(json: TokenizerJson) {
    const isUnigram = Array.isArray(json.model.vocab);
    const parts = new Tokenizer(
      {
        ...json,
        normalizer: withoutNmt(json.normalizer),
        pre_tokenizer: asSplit(json.pre_tokenizer),
        post_processor: null,
        // Their tables for Unigram are large, and `UnigramModel` has its own.
        ...(isUnigram && { model: { ...json.model, vocab: [["", 0]], unk_id: 0 } }),
        added_tokens: [],
      },
      // Without it, WordLevel has no token for unknown words.
      { unk_token: json.model.unk_token },
    );
    this.model = isUnigram ? new UnigramModel(json) : parts.model;
    const { normalizer, pre_tokenizer, decoder } = parts;
    const asIs: Step = (texts) => texts;
    const normalize = normalizer === null ? asIs : stepOf(normalizer);
    this.#split = pre_tokenizer === null ? asIs : stepOf(pre_tokenizer);
    this.#join = decoder === null ? undefined : stepOf(decoder);
    const own = isMadeByParts(json.normalizer) ? undefined : normalizerOf(json.normalizer);
    this.#normalize =
      own === undefined ? normalize : (texts) => texts.map((text) => plain(own(aligned(text))));
    const added = json.added_tokens.map((token) => new AddedToken(token));
    if (decoder !== null) decoder.added_tokens = added;
    const [asWritten, normalized]: [string[], string[]] = [[], []];
    for (const token of added) {
      this.model.tokens_to_ids.set(token.content, token.id);
      this.model.vocab[token.id] = token.content;
      this.#added.set(token.content, token);
      if (token.normalized && normalizer !== null) {
        const [content = ""] = run(this.#normalize, [token.content]);
        normalized.push(content);
        this.#added.set(content, token);
      } else asWritten.push(token.content);
    }
    this.#asWritten = new WordFinder(asWritten);
    this.#normalized = new WordFinder(normalized);
  }

  /** Encodes a text, without special tokens around it. */
  encode(text: string): { readonly ids: readonly number[]; readonly tokens: readonly string[] } {
    const tokens = this.#aroundAdded(text, this.#asWritten, (section, index) => {
      const [normal = ""] = run(this.#normalize, [section]);
      return this.#aroundAdded(normal, this.#normalized, (part) =>
        this.#encodePieces(run(this.#split, [part], index)),
      );
    });
    const ids = tokens.map(
      (token) => this.#added.get(token)?.id ?? this.idOf(token) ?? this.#unknownFor(token),
    );
    return { ids, tokens };
  }

  /** @throws {TroupeError} `TOKENIZER_INVALID` if the vocabulary has no token for unknown text */
  #unknownFor(token: string): number {
    if (this.model.unk_token_id !== undefined) return this.model.unk_token_id;
    throw refusal(
      "a token for unknown text in model.vocab",
      `none for ${JSON.stringify(token.slice(0, 40))}`,
    );
  }

  #encodePieces(pieces: readonly string[]): readonly string[] {
    if (!this.model.fuse_unk) return this.model.encode(pieces);
    const isUnknown = (token = "") => this.idOf(token) === this.model.unk_token_id;
    return pieces.flatMap((piece) =>
      this.model.encode([piece]).filter((token, at, all) => !isUnknown(token) || token !== all[at - 1]),
    );
  }

  /** Encodes the parts of a text between its added tokens, which may take in white space; `index`: of the part, these included. */
  #aroundAdded(
    text: string,
    finder: WordFinder,
    encode: (part: string, index: number) => readonly string[],
  ): readonly string[] {
    const parts = Array.from(finder.partsOf(text), ({ span }) => text.slice(...span));
    for (const [index, part] of parts.entries()) {
      const { lstrip = false, rstrip = false } = this.#added.get(part) ?? {};
      const [before, after] = [parts[index - 1], parts[index + 1]];
      if (lstrip && before !== undefined) parts[index - 1] = before.trimEnd();
      if (rstrip && after !== undefined) parts[index + 1] = after.trimStart();
    }
    return parts.flatMap((part, index) => {
      if (part === "") return [];
      return this.#added.has(part) ? [part] : encode(part, index);
    });
  }

  /** Decodes tokens of the vocabulary, at least one. */
  decode(ids: readonly number[]): string {
    const tokens = ids.map((id) => this.tokenOf(id) as string);
    if (this.#join === undefined) return tokens.join(" ");
    const text = run(this.#join, tokens).join("");
    const { end_of_word_suffix: suffix } = this.model;
    return suffix ? text.replaceAll(suffix, " ") : text;
  }

  idOf(token: string): number | undefined {
    return this.model.tokens_to_ids.get(token);
  }

  tokenOf(id: number): string | undefined {
    return this.model.vocab[id];
  }
}

/** Runs a step. A pattern's refusal of a text that is too long for it becomes an error of the tokenizer. */
function run(step: Step, texts: readonly string[], section = 0): readonly string[] {
  try {
    return step(texts, { longest: longestOf(lengthOf(texts)), section });
  } catch (cause) {
    if (cause instanceof PatternRefused) throw refusal("a pattern that fits the text", cause.message, cause);
    throw cause;
  }
}

function stepOf(part: Part): Step {
  const inner = part.normalizers ?? part.tokenizers ?? part.decoders;
  if (inner !== undefined) {
    const steps = inner.map(stepOf);
    return (texts, at) => steps.reduce((made, step) => step(made, at), texts);
  }
  const { type, pattern: { Regex: source } = {}, content = "" } = part.config ?? {};
  // The part has translated the expression for JavaScript.
  const isForeign = source !== undefined && !(type === "Split" && linear.has(source));
  const pattern = isForeign && part.pattern ? new LinearPattern(part.pattern.source) : part.pattern;
  if (type === "Replace" && pattern) return replacing(pattern, content);
  if (type === "Split" && pattern) return eachText((text) => splitText(text, pattern, part.config ?? {}));
  if (part.normalize !== undefined) return eachText((text) => [part.normalize?.(text) ?? text]);
  if (part.decode_chain === undefined)
    return eachText((text, { section }) => part.pre_tokenize_text?.(text, { section_index: section }) ?? []);
  return (tokens, { longest }) => {
    const made = part.decode_chain?.(tokens) ?? [];
    checkGrowth(lengthOf(made), longest);
    return made;
  };
}

/** A step that makes some texts of each. */
function eachText(make: (text: string, at: Parameters<Step>[1]) => readonly string[]): Step {
  return (texts, at) => {
    let length = 0;
    return texts.flatMap((text) => {
      const made = make(text, at);
      length += lengthOf(made);
      checkGrowth(length, at.longest);
      return made;
    });
  };
}

/** A step that replaces a pattern by a literal. The length of the result is computed before it is made. */
function replacing(pattern: RegExp | LinearPattern, content: string): Step {
  return eachText((text, { longest }) => {
    const kept = pattern instanceof LinearPattern ? pattern.cut(text).filter(isOutside) : text.split(pattern);
    checkGrowth(lengthOf(kept) + content.length * (kept.length - 1), longest);
    return [kept.join(content)];
  });
}

/** Whether a part of {@link LinearPattern.cut} is outside of the matches. */
function isOutside(_part: string, index: number): boolean {
  return index % 2 === 0;
}

function lengthOf(texts: readonly string[]): number {
  return texts.reduce((sum, { length }) => sum + length, 0);
}

/**
 * Whether the package's normalization of a text equals normalizers.ts. It works on strings, which takes half as
 * long as single characters, and most encodings need no ranges.
 */
function isMadeByParts(json: NormalizerJson | null): boolean {
  switch (json?.type) {
    case "Sequence":
      return (json.normalizers ?? []).every(isMadeByParts);
    case "Replace":
      return json.pattern?.String !== undefined;
    case undefined:
    case "BertNormalizer":
    case "NFC":
    case "NFD":
    case "NFKC":
    case "NFKD":
    case "Prepend":
      return true;
    default:
      return false;
  }
}

/** Removes Nmt, which the package lacks and normalizers.ts implements. */
function withoutNmt(normalizer: unknown): unknown {
  const { type, normalizers = [] } = (normalizer ?? {}) as NormalizerJson;
  if (type === "Nmt") return { type: "Sequence", normalizers: [] };
  if (type === "Sequence") return { type, normalizers: normalizers.map(withoutNmt) };
  return normalizer;
}

/**
 * Patterns by which published tokenizers cut texts into words, as their `tokenizer.json` has them. RegExp is known to match each in
 * linear time, three times as fast as `LinearPattern` matches it.
 */
export const publishedPatterns = {
  gpt2: String.raw`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`,
  /** GPT-4's too. */
  llama3: String.raw`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
  /** Qwen 3's too. */
  qwen2: String.raw`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
  /** Llama 4's too. */
  gpt4o: String.raw`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
  bloom: " ?[^(\\s|[.,!?…。，、।۔،])]+",
  deepSeekV3:
    String.raw`[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_` +
    "`" +
    String.raw`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
};

/** Patterns of Split that RegExp matches in linear time. */
const linear: ReadonlySet<string> = new Set([
  ...Object.values(publishedPatterns),
  ...Object.values(splitPatterns),
]);
