import { isRecord } from "../../../errors/index.ts";
import type { SpecialToken } from "./gpt2-pieces.ts";
import type { NormalizerJson } from "./normalizers.ts";
import { refusal } from "./refusal.ts";
import { isBehavior } from "./splits.ts";

/** The part of a Hugging Face `tokenizer.json` that is read here; the engine reads the rest. */
export interface TokenizerJson {
  readonly added_tokens: readonly (SpecialToken & { readonly id: number })[];
  readonly normalizer: NormalizerJson | null;
  readonly pre_tokenizer: {
    readonly type: string;
    readonly prepend_scheme?: "always" | "first" | "never";
    readonly add_prefix_space?: boolean;
    readonly use_regex?: boolean;
    readonly replacement?: string;
    readonly split?: boolean;
  } | null;
  readonly model: {
    readonly type?: string;
    readonly vocab: object;
    readonly unk_id?: number | null;
    readonly unk_token?: string | null;
    readonly byte_fallback?: boolean;
    readonly continuing_subword_prefix?: string | null;
  };
  readonly post_processor?: { readonly type?: string; readonly trim_offsets?: boolean } | null;
}

type Json = Readonly<Record<string, unknown>>;

/** The most steps of one kind, such as normalizers, nested ones included. */
const MAX_STEPS = 64;
const MAX_DEPTH = 8;
/** Longest pattern, setting and token, in UTF-16 units. The longest of published tokenizers have 500, 10 and 500. */
const [MAX_PATTERN, MAX_SETTING, MAX_TOKEN] = [4_096, 256, 4_096];
/** The longest token of Unigram and word of WordPiece: both try every substring of a word. */
const MAX_TRIED = 256;
/** Longest table of replacements, in base64; the longest of published tokenizers has 350,000. */
const MAX_CHARSMAP = 1 << 23;
const MAX_ID = 1 << 24;
/** The most added tokens, which are searched for at each character of a text, and the most characters of all together. */
const [MAX_ADDED, MAX_ADDED_CHARACTERS] = [1 << 16, 1 << 20];

/** Names of the lists of steps in sequences. */
const stepLists = ["normalizers", "pretokenizers", "decoders"] as const;

/**
 * Checks a `tokenizer.json` before it is used: the type and size of every part, so that neither creating nor using the
 * tokenizer costs more than a constant times a text's length.
 * @throws {TroupeError} `TOKENIZER_INVALID` naming the part
 */
export function checkTokenizerJson(json: unknown): TokenizerJson {
  const {
    model,
    added_tokens: added,
    normalizer,
    pre_tokenizer,
    decoder,
  } = recordIn(json, "a tokenizer.json");
  checkAdded(added);
  for (const [name, part] of Object.entries({ normalizer, pre_tokenizer, decoder }))
    if (part !== null && part !== undefined) checkSteps(part, name, 0, { left: MAX_STEPS });
  checkModel(recordIn(model, "model"));
  return json as TokenizerJson;
}

function checkAdded(added: unknown): void {
  if (!Array.isArray(added) || added.length > MAX_ADDED)
    throw refusal(`added_tokens: a list of at most ${MAX_ADDED}`, said(added));
  let numCharacters = 0;
  for (const [index, token] of added.entries()) {
    const where = `added_tokens[${index}]`;
    const { content, id, single_word: isAlone } = recordIn(token, where);
    if (isAlone === true) throw refusal(`${where}.single_word: false, for this library lacks it`, "true");
    checkText(content, `${where}.content`, 1, MAX_TOKEN);
    checkId(id, `${where}.id`);
    numCharacters += (content as string).length;
  }
  if (numCharacters > MAX_ADDED_CHARACTERS)
    throw refusal(`added_tokens of at most ${MAX_ADDED_CHARACTERS} characters`, `${numCharacters}`);
}

/** Checks a part that changes text or tokens step by step: one step, or a sequence of such parts. */
function checkSteps(value: unknown, where: string, depth: number, budget: { left: number }): void {
  const part = recordIn(value, where);
  if (depth > MAX_DEPTH || --budget.left < 0)
    throw refusal(`${where}: at most ${MAX_STEPS} steps, ${MAX_DEPTH} deep`, "more");
  for (const [name, setting] of Object.entries(part)) checkSetting(setting, name, `${where}.${name}`);
  const { type, pattern, length } = part;
  if (typeof type !== "string") throw refusal(`${where}.type: a word`, said(type));
  if (type === "Replace" || type === "Split") checkPattern(pattern, `${where}.pattern`);
  if ((type === "Split" || type === "Punctuation") && !isBehavior(part.behavior))
    throw refusal(`${where}.behavior: one of Split's`, said(part.behavior));
  if (type === "Prepend" && typeof part.prepend !== "string")
    throw refusal(`${where}.prepend: a text`, said(part.prepend));
  if (type === "FixedLength" && !(Number.isSafeInteger(length) && (length as number) > 0))
    throw refusal(`${where}.length: a whole number ≥ 1`, said(length));
  if (type !== "Sequence") return;
  for (const list of stepLists)
    for (const [index, step] of ((part[list] ?? []) as unknown[]).entries())
      checkSteps(step, `${where}.${list}[${index}]`, depth + 1, budget);
}

function checkSetting(value: unknown, name: string, where: string): void {
  if ((stepLists as readonly string[]).includes(name)) {
    if (!Array.isArray(value)) throw refusal(`${where}: a list`, said(value));
  } else if (name === "pattern") checkPattern(value, where);
  else if (name === "precompiled_charsmap" && value !== null) checkText(value, where, 0, MAX_CHARSMAP);
  else if (typeof value === "string") checkText(value, where, 0, MAX_SETTING);
  else if (typeof value === "object" && value !== null)
    throw refusal(`${where}: a text, a number, true or false`, said(value));
}

function checkPattern(value: unknown, where: string): void {
  const { String: text, Regex: source } = recordIn(value, where);
  if (source === undefined) checkText(text, `${where}.String`, 1, MAX_SETTING);
  else checkText(source, `${where}.Regex`, 0, MAX_PATTERN);
}

const modelTexts = [
  "unk_token",
  "continuing_subword_prefix",
  "continuing_subword_suffix",
  "end_of_word_suffix",
] as const;

function checkModel(model: Json): void {
  const { type, vocab, merges, max_input_chars_per_word: longest } = model;
  if (type !== undefined && type !== null && typeof type !== "string")
    throw refusal("model.type: a word", said(type));
  for (const name of modelTexts)
    if (model[name] !== undefined && model[name] !== null)
      checkText(model[name], `model.${name}`, 0, MAX_SETTING);
  if (longest !== undefined && !(Number.isSafeInteger(longest) && (longest as number) <= MAX_TRIED))
    throw refusal(`model.max_input_chars_per_word: a whole number ≤ ${MAX_TRIED}`, said(longest));
  if (Array.isArray(vocab)) checkScores(vocab, model.unk_id);
  else checkVocabulary(recordIn(vocab, "model.vocab"));
  if (merges === undefined) return;
  checkMerges(merges);
  const { continuing_subword_prefix: prefix } = model;
  if (prefix !== undefined && prefix !== null && prefix !== "")
    throw refusal("model.continuing_subword_prefix: empty for BPE, for this library lacks it", said(prefix));
}

function checkVocabulary(vocab: Json): void {
  for (const token of Object.keys(vocab)) {
    if (token.length > MAX_TOKEN)
      throw refusal(`tokens of at most ${MAX_TOKEN} characters in model.vocab`, `one of ${token.length}`);
    checkId(vocab[token], "model.vocab: each token's id");
  }
}

/** Checks Unigram's vocabulary: tokens with their log-probabilities. */
function checkScores(vocab: readonly unknown[], unknown: unknown): void {
  for (const entry of vocab) {
    const [token, score] = Array.isArray(entry) ? entry : [];
    checkText(token, "model.vocab: each token", 0, MAX_TRIED);
    if (typeof score !== "number") throw refusal("model.vocab: a number for each token", said(score));
  }
  if (vocab.length === 0 || vocab.length > MAX_ID)
    throw refusal(`model.vocab: 1 to ${MAX_ID} tokens`, `${vocab.length}`);
  if (unknown !== undefined && unknown !== null && !Object.hasOwn(vocab, unknown as number))
    throw refusal("model.unk_id: the place of a token", said(unknown));
}

/** Checks merges: two tokens each, all as one text or all as a pair. */
function checkMerges(merges: unknown): void {
  if (!Array.isArray(merges)) throw refusal("model.merges: a list", said(merges));
  const isText = typeof merges[0] === "string";
  for (const merge of merges) {
    const isGood = isText
      ? typeof merge === "string" && merge.length <= 2 * MAX_TOKEN + 1
      : Array.isArray(merge) && merge.length === 2 && merge.every((each) => typeof each === "string");
    if (!isGood) throw refusal("model.merges: two tokens each, all written alike", said(merge));
  }
}

function checkId(id: unknown, where: string): void {
  if (!(Number.isSafeInteger(id) && (id as number) >= 0 && (id as number) < MAX_ID))
    throw refusal(`${where}: a whole number from 0 to ${MAX_ID - 1}`, said(id));
}

function checkText(value: unknown, where: string, least: number, most: number): void {
  if (typeof value !== "string") throw refusal(`${where}: a text`, said(value));
  if (value.length < least || value.length > most)
    throw refusal(`${where}: a text of ${least} to ${most} characters`, `one of ${value.length}`);
}

function recordIn(value: unknown, where: string): Json {
  if (isRecord(value)) return value;
  throw refusal(`${where}: an object`, said(value));
}

function said(value: unknown): string {
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (typeof value === "object" && value !== null) return "an object";
  return `${JSON.stringify(value) ?? "none"}`.slice(0, 60);
}
