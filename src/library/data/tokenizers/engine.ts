import { AddedToken, Tokenizer as Engine } from "@huggingface/tokenizers";
import { TroupeError } from "../../../errors/index.ts";
import { LinearPattern, PatternRefused } from "../../../errors/untrusted/index.ts";
import { aligned, plain } from "./aligned-text.ts";
import { literal } from "./gpt2-pieces.ts";
import { checkGrowth, longestOf } from "./growth.ts";
import { type NormalizerJson, normalizerOf } from "./normalizers.ts";
import { refusal } from "./refusal.ts";
import type { TokenizerJson } from "./tokenizer-json.ts";
import { UnigramPieces } from "./unigram.ts";

/** The character for a space in front of a word. */
export const WORD_BEGIN = "\u2581";

/** A step of the engine: it may have a pattern, or steps of its own. */
interface Step {
  readonly config?: StepConfig;
  pattern?: unknown;
  readonly normalizers?: readonly (Step | null)[];
  readonly tokenizers?: readonly (Step | null)[];
  readonly decoders?: readonly (Step | null)[];
  _call(input: unknown, options?: unknown): unknown;
  normalize?(text: string): string;
  pre_tokenize?(texts: string | string[], options?: unknown): string[];
  pre_tokenize_text?(text: string, options?: unknown): string[];
  decode_chain?(tokens: string[]): string[];
}

interface StepConfig {
  readonly type?: string;
  readonly pattern?: { readonly Regex?: string; readonly String?: string };
  readonly content?: string;
}

/**
 * Creates the engine for a `tokenizer.json`, with limits on the cost of a hostile one: patterns are matched in linear
 * time, and no step makes a text much longer.
 * @param json - checked by {@link checkTokenizerJson}
 * @throws {TroupeError} `TOKENIZER_INVALID` where the engine refuses it, or a pattern cannot be matched in linear time
 */
export function createEngine(json: TokenizerJson): Engine {
  try {
    return boundedEngine(json);
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

function boundedEngine(json: TokenizerJson): Engine {
  const isUnigram = Array.isArray(json.model.vocab);
  const engine = new Engine(
    {
      ...json,
      normalizer: withoutNmt(json.normalizer),
      // The engine is never asked to add special tokens around a text.
      post_processor: null,
      // The engine's tables for Unigram are large, and `encodeAsUnigram` replaces them.
      ...(isUnigram && { model: { ...json.model, vocab: [["", 0]], unk_id: 0 } }),
      added_tokens: [],
    },
    {},
  );
  const { normalizer, pre_tokenizer, decoder, model } = engine;
  if (isUnigram && model !== null) encodeAsUnigram(model, json);
  for (const step of [normalizer, pre_tokenizer, decoder])
    if (step !== null) new BoundedSteps(step as unknown as Step);
  const own = isMadeByEngine(json.normalizer) ? undefined : normalizerOf(json.normalizer);
  if (own !== undefined && normalizer !== null)
    normalizer._call = (text: string) => inWords(() => plain(own(aligned(text))));
  addTokens(engine, json.added_tokens);
  return engine;
}

/** Limits the engine's steps of one kind: neither one of them nor all together may make a text much longer. */
class BoundedSteps {
  #longest = 0;

  /** @param outermost - its patterns, and those of the steps within it, are replaced */
  constructor(outermost: Step) {
    this.#bound(outermost);
    const call = outermost._call;
    outermost._call = (input, options) => {
      this.#longest = longestOf(lengthOf(input as string | string[]));
      return inWords(() => call.call(outermost, input, options));
    };
  }

  #bound(step: Step): void {
    const { pattern: { Regex: source } = {}, type, content = "" } = step.config ?? {};
    if (
      step.pattern instanceof RegExp &&
      source !== undefined &&
      !(type === "Split" && publishedPatterns.has(source))
    )
      step.pattern = new LinearPattern(step.pattern.source);
    const inner = [...(step.normalizers ?? []), ...(step.tokenizers ?? []), ...(step.decoders ?? [])];
    for (const each of inner) if (each !== null) this.#bound(each);
    const { normalize, pre_tokenize_text: split, decode_chain: join } = step;
    const { pattern } = step;
    const isReplace = type === "Replace" && pattern !== null && pattern !== undefined;
    const replace = (texts: readonly string[]) =>
      this.#replaced(texts, pattern as RegExp | LinearPattern, content);
    if (normalize !== undefined)
      step.normalize = (text) =>
        this.#checked(isReplace ? (replace([text])[0] as string) : normalize.call(step, text));
    if (split !== undefined)
      step.pre_tokenize = (texts, options) => {
        const all = typeof texts === "string" ? [texts] : texts;
        return this.#eachChecked(all, (text) =>
          isReplace ? replace([text]) : split.call(step, text, options),
        );
      };
    if (join !== undefined)
      step.decode_chain = (tokens) => this.#checked(isReplace ? replace(tokens) : join.call(step, tokens));
  }

  #checked<T extends string | string[]>(made: T): T {
    checkGrowth(lengthOf(made), this.#longest);
    return made;
  }

  #eachChecked(texts: readonly string[], split: (text: string) => string[]): string[] {
    const made: string[] = [];
    let length = 0;
    for (const text of texts) {
      const parts = split(text);
      length += lengthOf(parts);
      checkGrowth(length, this.#longest);
      for (const part of parts) made.push(part);
    }
    return made;
  }

  /** Replaces a pattern in some texts by a literal. The length of the result is computed before it is made. */
  #replaced(texts: readonly string[], pattern: RegExp | LinearPattern, content: string): string[] {
    let length = 0;
    return texts.map((text) => {
      const kept = pattern instanceof LinearPattern ? pattern.pieces(text) : text.split(pattern);
      length += lengthOf(kept) + content.length * (kept.length - 1);
      checkGrowth(length, this.#longest);
      return kept.join(content);
    });
  }
}

/** Converts a pattern's refusal of a text that is too long for it into an error of the tokenizer. */
function inWords<T>(work: () => T): T {
  try {
    return work();
  } catch (cause) {
    if (cause instanceof PatternRefused) throw refusal("a pattern that fits the text", cause.message, cause);
    throw cause;
  }
}

function lengthOf(texts: string | readonly string[]): number {
  return typeof texts === "string" ? texts.length : texts.reduce((sum, { length }) => sum + length, 0);
}

/** The fields in which the engine stores its added tokens. */
interface AddingEngine {
  readonly added_tokens: AddedToken[];
  readonly added_tokens_map: Map<string, AddedToken>;
  readonly special_tokens: string[];
  splitter_unnormalized: object;
  splitter_normalized: object;
}

/** Adds tokens like the engine's constructor, which must not do it: its steps have no limits by then. */
function addTokens(engine: Engine, tokens: TokenizerJson["added_tokens"]): void {
  const { model, normalizer } = engine;
  const adding = engine as unknown as AddingEngine;
  const contents: { readonly asWritten: string[]; readonly normalized: string[] } = {
    asWritten: [],
    normalized: [],
  };
  for (const token of tokens.map((each) => new AddedToken(each))) {
    adding.added_tokens.push(token);
    model?.tokens_to_ids.set(token.content, token.id);
    if (model !== null) model.vocab[token.id] = token.content;
    if (token.special) adding.special_tokens.push(token.content);
    adding.added_tokens_map.set(token.content, token);
    if (token.normalized && normalizer !== null) {
      const content = normalizer._call(token.content);
      contents.normalized.push(content);
      adding.added_tokens_map.set(content, token);
    } else contents.asWritten.push(token.content);
  }
  const Splitter = adding.splitter_normalized.constructor as new (words: readonly string[]) => object;
  adding.splitter_unnormalized = new Splitter(contents.asWritten);
  adding.splitter_normalized = new Splitter(contents.normalized);
}

/**
 * Whether the engine's normalization of a text equals normalizers.ts. The engine works on strings, which takes half as
 * long as single characters, and most encodings need no ranges.
 */
function isMadeByEngine(json: NormalizerJson | null): boolean {
  switch (json?.type) {
    case "Sequence":
      return (json.normalizers ?? []).every(isMadeByEngine);
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

/** Removes Nmt, which the engine lacks and normalizers.ts implements. */
function withoutNmt(normalizer: unknown): unknown {
  const { type, normalizers = [] } = (normalizer ?? {}) as NormalizerJson;
  if (type === "Nmt") return { type: "Sequence", normalizers: [] };
  if (type === "Sequence") return { type, normalizers: normalizers.map(withoutNmt) };
  return normalizer;
}

/**
 * Makes the engine's model cut words like Hugging Face's tokenizers. By itself the engine leaves words together, and
 * chooses differently among equally likely cuts.
 */
function encodeAsUnigram(model: NonNullable<Engine["model"]>, json: TokenizerJson): void {
  const tokens = (json.model.vocab as [string, number][]).map(([token]) => token);
  model.vocab = tokens;
  model.tokens_to_ids = new Map(tokens.map((token, id) => [token, id]));
  model.unk_token_id = json.model.unk_id ?? undefined;
  model.unk_token = tokens[json.model.unk_id ?? -1];
  const vocabulary = (json.model.vocab as [string, number][]).map(
    ([token, logProbability]) => [token, asTheyRead(logProbability)] as const,
  );
  const unigram = new UnigramPieces(vocabulary);
  const { type, split, replacement = WORD_BEGIN } = json.pre_tokenizer ?? {};
  const beforeWord = new RegExp(`(?=${literal(replacement)})`, "u");
  const wordsOf = (piece: string) =>
    type === "Metaspace" && split !== false ? piece.split(beforeWord) : [piece];
  model.encode = (pieces: readonly string[]) =>
    pieces.flatMap(wordsOf).flatMap((word) => unigram.encode(word));
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

/**
 * Patterns by which published tokenizers cut texts into words, as their `tokenizer.json` has them: GPT-2; GPT-4 and Llama 3; Qwen 2 and 3;
 * GPT-4o and Llama 4; BLOOM; DeepSeek V3. RegExp is known to match each in linear time, three times as fast as `LinearPattern` matches it.
 */
export const publishedPatterns: ReadonlySet<string> = new Set([
  String.raw`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`,
  String.raw`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
  String.raw`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
  String.raw`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
  String.raw` ?[^(\s|[.,!?…。，、।۔،])]+`,
  String.raw`[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_` +
    "`" +
    String.raw`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
]);
