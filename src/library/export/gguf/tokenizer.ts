import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { temporaryRoot } from "../../../errors/untrusted/index.ts";
import type { Companions, JsonObject } from "../../checkpoint/index.ts";
import { byteLetters, loadTokenizer, publishedPatterns, type TokenizerSpec } from "../../data/index.ts";
import type { GgufValue } from "../../models/index.ts";
import { exportError } from "../export-error.ts";
import type { OpenedModel } from "../open-model.ts";

type Facts = Record<string, GgufValue>;

/** The parts of a tokenizer.json that llama.cpp has other words for. */
interface TokenizerJson {
  readonly added_tokens: readonly {
    readonly id: number;
    readonly content: string;
    readonly special?: boolean;
  }[];
  readonly normalizer: Step | null;
  readonly pre_tokenizer: Step | null;
  readonly post_processor?: Step | null;
  readonly model: {
    readonly type?: string;
    readonly vocab: Readonly<Record<string, number>> | readonly (readonly [string, number])[];
    readonly merges?: readonly (string | readonly [string, string])[];
    readonly unk_token?: string | null;
    readonly unk_id?: number | null;
    readonly byte_fallback?: boolean;
    readonly ignore_merges?: boolean;
  };
}

interface Step {
  readonly type: string;
  readonly normalizers?: readonly Step[];
  readonly pretokenizers?: readonly Step[];
  readonly processors?: readonly Step[];
  readonly pattern?: { readonly Regex?: string; readonly String?: string };
  readonly single?: readonly object[];
  readonly [field: string]: unknown;
}

/** ggml's numbers of kinds of tokens. */
const kinds = { normal: 1, unknown: 2, control: 3, userDefined: 4, unused: 5, byte: 6 } as const;

/** The mark of a word's beginning. */
const SPACE = "\u2581";

/**
 * The header's values of a model's tokenizer and chat template. A model without a tokenizer takes tokens alone.
 * @param numWords - rows of the model's embedding; those without a token get one that no text has
 * @throws {TroupeError} `EXPORT` for a tokenizer that llama.cpp lacks
 */
export async function tokenizerFacts(
  { companions, config, generationConfig, tokenizer }: OpenedModel,
  numWords: number,
): Promise<Facts> {
  const json = (await tokenizerOf(companions)) ?? ownTokenizer(tokenizer);
  if (json === undefined) return { "tokenizer.ggml.model": { text: "none" } };
  const settings = jsonIn(companions, "tokenizer_config.json");
  return {
    ...wordsOf(json, numWords),
    ...specialsOf(
      json,
      [settings, jsonIn(companions, "special_tokens_map.json"), bertSpecials],
      [generationConfig ?? {}, config],
    ),
    ...chatTemplate(companions, settings),
  };
}

/** Reads the tokenizer in any of its published forms. */
async function tokenizerOf(companions: Companions): Promise<TokenizerJson | undefined> {
  const names = ["tokenizer.json", "vocab.json", "vocab.txt"];
  if (!names.some((name) => name in companions)) {
    const other = Object.keys(companions).find((name) => name.endsWith(".model"));
    if (other === undefined) return undefined;
    throw exportError("a tokenizer.json", other, {
      hint: "transformers writes one: AutoTokenizer.save_pretrained",
    });
  }
  const folder = await mkdtemp(join(temporaryRoot(), "troupe-tokenizer-"));
  try {
    for (const [name, bytes] of Object.entries(companions)) await writeFile(join(folder, name), bytes);
    const { spec } = await loadTokenizer(folder);
    return spec.kind === "hugging-face" ? (spec.tokenizer as unknown as TokenizerJson) : undefined;
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** A run's own tokenizer as byte-level BPE: characters of several bytes are merged of them. */
function ownTokenizer(spec: TokenizerSpec | undefined): TokenizerJson | undefined {
  if (spec === undefined) return undefined;
  if (spec.kind === "hugging-face") return spec.tokenizer as unknown as TokenizerJson;
  const letters = byteLetters().map(([letter]) => letter);
  const spelled = (character: string) => [...Buffer.from(character)].map((byte) => letters[byte] ?? "");
  const tokens = spec.kind === "byte" ? letters.map((letter) => [letter]) : [...spec.characters].map(spelled);
  const merges = tokens.flatMap((parts) =>
    parts.slice(1).map((part, at): [string, string] => [parts.slice(0, at + 1).join(""), part]),
  );
  return {
    added_tokens: [],
    normalizer: null,
    pre_tokenizer: { type: "ByteLevel", add_prefix_space: false },
    model: { vocab: Object.fromEntries(tokens.map((parts, id) => [parts.join(""), id])), merges },
  };
}

function wordsOf(json: TokenizerJson, numWords: number): Facts {
  const { model, normalizer, pre_tokenizer: cut } = json;
  const type = model.type ?? "BPE";
  const isByteLevel = stepsIn(cut).some((step) => step.type === "ByteLevel");
  if (type === "BPE" && isByteLevel) return byteLevelWords(json, numWords);
  if (type === "BPE" && model.byte_fallback === true) return sentencePieceWords(json, numWords);
  if (type === "WordPiece" && normalizer?.type === "BertNormalizer") return wordPieces(json, numWords);
  if (type === "Unigram" && model.byte_fallback !== true) return unigramWords(json, numWords);
  throw lacksTokenizer(`a ${type} tokenizer ${type === "BPE" ? "without bytes" : "of another kind"}`);
}

/** GPT-2's byte-level BPE, and those that cut texts otherwise first. */
function byteLevelWords(json: TokenizerJson, numWords: number): Facts {
  const { model, normalizer, pre_tokenizer: cut } = json;
  const steps = stepsIn(normalizer);
  // llama.cpp leaves texts as they are; almost all are in this form.
  const changed = steps.find((step) => step.type !== "NFC");
  if (changed !== undefined) throw lacksTokenizer(`the normalizer ${changed.type} before byte-level BPE`);
  const merges = (model.merges ?? []).map((merge) => (typeof merge === "string" ? merge : merge.join(" ")));
  return {
    ...listed(json, numWords, { model: "gpt2" }),
    "tokenizer.ggml.pre": { text: cutName(stepsIn(cut), model.ignore_merges === true) },
    "tokenizer.ggml.merges": { texts: merges },
  };
}

/** The name that llama.cpp has for a way of cutting texts before BPE. */
function cutName(steps: readonly Step[], ignoresMerges: boolean): string {
  const [first, second] = steps;
  const bytes = steps.at(-1);
  if (bytes?.type === "ByteLevel" && bytes.add_prefix_space !== true) {
    const isGpt2 = bytes.use_regex !== false && !ignoresMerges;
    if (steps.length === 1 && isGpt2) return "gpt-2";
    if (steps.length === 2 && isGpt2 && first?.type === "Digits" && first.individual_digits === true)
      return "smollm";
    const isSplit = first?.type === "Split" && first.behavior === "Isolated" && first.invert !== true;
    if (steps.length === 2 && isSplit && second?.use_regex === false) {
      const pattern = first.pattern?.Regex;
      if (pattern === publishedPatterns.llama3) return ignoresMerges ? "llama-bpe" : "smaug-bpe";
      if (pattern === publishedPatterns.qwen2 && !ignoresMerges) return "qwen2";
    }
  }
  const cuts = steps.map(({ type, pattern }) => (pattern?.Regex ?? pattern?.String ?? type).slice(0, 60));
  throw lacksTokenizer(`BPE that cuts texts by ${cuts.join(", then ")}`);
}

/** LLaMA's: SentencePiece's BPE, whose merges llama.cpp derives from the tokens' scores. */
function sentencePieceWords(json: TokenizerJson, numWords: number): Facts {
  const { model, normalizer, pre_tokenizer: cut } = json;
  const merges = (model.merges ?? []).map((merge) =>
    typeof merge === "string" ? (merge.split(" ") as [string, string]) : merge,
  );
  const ranks = new Map<string, number>();
  for (const [rank, [left, right]] of merges.entries())
    if (!ranks.has(left + right)) ranks.set(left + right, rank);
  checkMerges(model.vocab as Readonly<Record<string, number>>, merges, ranks);
  const before = [...stepsIn(normalizer), ...stepsIn(cut)];
  const isKnown = ({ type, prepend, pattern, content, replacement = SPACE, split }: Step) =>
    (type === "Prepend" && prepend === SPACE) ||
    (type === "Replace" && pattern?.String === " " && content === SPACE) ||
    (type === "Metaspace" && replacement === SPACE && split === false);
  const other = before.find((step) => !isKnown(step));
  if (other !== undefined) throw lacksTokenizer(`the step ${other.type} before LLaMA's BPE`);
  const prepends = before.some(
    ({ type, prepend_scheme = "always" }) =>
      type === "Prepend" || (type === "Metaspace" && prepend_scheme !== "never"),
  );
  const isByte = (token: string) => /^<0x[0-9A-F]{2}>$/.test(token);
  const words = listed(json, numWords, { model: "llama", isByte });
  return {
    ...words,
    "tokenizer.ggml.pre": { text: "default" },
    "tokenizer.ggml.scores": {
      floats: (words["tokenizer.ggml.tokens"] as { texts: readonly string[] }).texts.map(
        (token) => -(ranks.get(token) ?? 0),
      ),
    },
    "tokenizer.ggml.add_space_prefix": { flag: prepends },
  };
}

/** Scores of tokens give the same tokens as merges if any two neighbours whose text is a token merge, all of a token's at its rank. */
function checkMerges(
  vocab: Readonly<Record<string, number>>,
  merges: readonly (readonly [string, string])[],
  ranks: ReadonlyMap<string, number>,
): void {
  const counts = new Map<string, number>();
  let [before, most] = ["", -1];
  for (const [left, right] of merges) {
    const made = left + right;
    const rank = ranks.get(made) ?? 0;
    if (made !== before && rank < most)
      throw lacksTokenizer(`merges of ${JSON.stringify(made)} at two ranks`);
    [before, most] = [made, Math.max(most, rank)];
    counts.set(made, (counts.get(made) ?? 0) + 1);
  }
  for (const [made, count] of counts) {
    const letters = [...made];
    const halves = letters.filter((_, at) => {
      const [left, right] = [letters.slice(0, at).join(""), letters.slice(at).join("")];
      return at > 0 && Object.hasOwn(vocab, left) && Object.hasOwn(vocab, right);
    });
    if (halves.length !== count)
      throw lacksTokenizer(`halves of ${JSON.stringify(made)} that are tokens and do not merge`);
  }
}

/** T5's: SentencePiece's unigrams, with its table of characters. */
function unigramWords(json: TokenizerJson, numWords: number): Facts {
  const { model, normalizer, pre_tokenizer: cut } = json;
  const scored = model.vocab as readonly (readonly [string, number])[];
  const [table, ...others] = stepsIn(normalizer);
  const charsmap = table?.type === "Precompiled" ? table.precompiled_charsmap : undefined;
  const cuts = stepsIn(cut);
  const words = cuts.at(-1);
  // Either way, spaces beyond one are dropped; llama.cpp does that by itself.
  const splits = cuts.length === 2 && cuts[0]?.type === "WhitespaceSplit" && others.length === 0;
  const replaces =
    cuts.length === 1 &&
    others.every(
      ({ type, pattern, strip_left: left }) =>
        (type === "Strip" && left === false) || (type === "Replace" && pattern?.Regex === " {2,}"),
    ) &&
    others.some(({ type }) => type === "Replace");
  const isKnown =
    words?.type === "Metaspace" && (words.replacement ?? SPACE) === SPACE && typeof charsmap === "string";
  if (!isKnown || !(splits || replaces)) {
    const steps = [...stepsIn(normalizer), ...cuts].map(({ type }) => type);
    throw lacksTokenizer(`the steps ${steps.join(", ") || "none"} before unigrams`);
  }
  const ids = Object.fromEntries(scored.map(([token], id) => [token, id]));
  const unknown = scored[model.unk_id ?? -1]?.[0];
  const listedWords = listed({ ...json, model: { vocab: ids, unk_token: unknown ?? null } }, numWords, {
    model: "t5",
  });
  const { prepend_scheme: scheme = "always", add_prefix_space: adds } = words;
  return {
    ...listedWords,
    "tokenizer.ggml.pre": { text: "default" },
    "tokenizer.ggml.scores": {
      floats: Array.from({ length: numWords }, (_, id) => scored[id]?.[1] ?? UNUSED_SCORE),
    },
    "tokenizer.ggml.add_space_prefix": { flag: scheme !== "never" && adds !== false },
    "tokenizer.ggml.remove_extra_whitespaces": { flag: true },
    "tokenizer.ggml.precompiled_charsmap": { bytes: Buffer.from(charsmap as string, "base64") },
  };
}

/** The score of a token that no text has. */
const UNUSED_SCORE = -10_000;

/** BERT's WordPiece; llama.cpp marks the beginnings of words, not their continuations. */
function wordPieces(json: TokenizerJson, numWords: number): Facts {
  const {
    lowercase = true,
    strip_accents: strips,
    handle_chinese_chars: spaces,
    clean_text: cleans,
  } = json.normalizer as Step;
  if (spaces === false || cleans === false)
    throw lacksTokenizer("a BertNormalizer that leaves texts as they are");
  const spell = (token: string) => (token.startsWith("##") ? token.slice(2) : SPACE + token);
  return {
    ...listed(json, numWords, { model: "bert", spell }),
    "tokenizer.ggml.normalizer.lowercase": { flag: lowercase === true },
    "tokenizer.ggml.normalizer.strip_accents": { flag: (strips ?? lowercase) === true },
  };
}

/** All tokens by their ids, with their kinds. */
function listed(
  { added_tokens: added, model: { vocab, unk_token: unknown } }: TokenizerJson,
  numWords: number,
  {
    model,
    spell = (token) => token,
    isByte = () => false,
  }: {
    readonly model: string;
    /** llama.cpp's spelling of a token that is not special. */
    readonly spell?: (token: string) => string;
    readonly isByte?: (token: string) => boolean;
  },
): Facts {
  const texts = Array.from({ length: numWords }, (_, id) => `[PAD${id}]`);
  const types = Array<number>(numWords).fill(kinds.unused);
  const put = (token: string, id: number, kind: number) => {
    if (id >= numWords)
      throw exportError(`at most ${numWords} tokens, as the model has`, `${token} as number ${id}`);
    texts[id] = token;
    types[id] = kind;
  };
  const special = new Map(added.map((token) => [token.content, token]));
  for (const [token, id] of Object.entries(vocab as Readonly<Record<string, number>>)) {
    const kind = token === unknown ? kinds.unknown : isByte(token) ? kinds.byte : kinds.normal;
    put(special.has(token) || kind === kinds.unknown ? token : spell(token), id, kind);
  }
  for (const { content, id, special: isControl } of added)
    if (content !== unknown) put(content, id, isControl === true ? kinds.control : kinds.userDefined);
  return {
    "tokenizer.ggml.model": { text: model },
    "tokenizer.ggml.tokens": { texts },
    "tokenizer.ggml.token_type": { ints: types },
  };
}

/** Names of special tokens in tokenizer_config.json, and llama.cpp's. */
const roles = {
  bos_token: "bos_token_id",
  eos_token: "eos_token_id",
  unk_token: "unknown_token_id",
  sep_token: "seperator_token_id",
  pad_token: "padding_token_id",
  cls_token: "cls_token_id",
  mask_token: "mask_token_id",
} as const;

/** Names of special tokens where a vocabulary alone is published. */
const bertSpecials = {
  unk_token: "[UNK]",
  sep_token: "[SEP]",
  pad_token: "[PAD]",
  cls_token: "[CLS]",
  mask_token: "[MASK]",
};

/** Ids of special tokens, and which of them are put around texts. @param named - by their texts @param numbered - by their ids */
function specialsOf(
  json: TokenizerJson,
  named: readonly JsonObject[],
  numbered: readonly JsonObject[],
): Facts {
  const ids = new Map(json.added_tokens.map(({ content, id }) => [content, id]));
  if (!Array.isArray(json.model.vocab))
    for (const [token, id] of Object.entries(json.model.vocab)) ids.set(token, id);
  const idOf = (role: keyof typeof roles): number | undefined => {
    for (const settings of named) {
      const given = settings[role] as string | { readonly content?: string } | null | undefined;
      const found = ids.get(typeof given === "string" ? given : (given?.content ?? ""));
      if (found !== undefined) return found;
    }
    const given = numbered.map((fields) => [fields[`${role}_id`]].flat()[0]);
    return given.find((id): id is number => typeof id === "number" && [...ids.values()].includes(id));
  };
  const facts: Facts = {};
  for (const role of Object.keys(roles) as (keyof typeof roles)[]) {
    const uint = idOf(role);
    if (uint !== undefined) facts[`tokenizer.ggml.${roles[role]}`] = { uint };
  }
  // llama.cpp puts BERT's tokens around each text by itself, and knows the first as the beginning.
  if (json.model.type === "WordPiece") {
    const begin = facts["tokenizer.ggml.cls_token_id"];
    return { ...facts, ...(begin && { "tokenizer.ggml.bos_token_id": begin }) };
  }
  const around = aroundTexts(json.post_processor ?? null, named[0] ?? {});
  for (const [name, flag] of Object.entries(around)) facts[`tokenizer.ggml.${name}`] = { flag };
  return facts;
}

function aroundTexts(processor: Step | null, settings: JsonObject): Record<string, boolean> {
  const steps = processor?.type === "Sequence" ? (processor.processors ?? []) : [processor];
  const template = steps.find((step) => step?.type === "TemplateProcessing")?.single;
  const isBert = steps.some((step) => step?.type === "BertProcessing" || step?.type === "RobertaProcessing");
  const isSpecial = (piece: object | undefined) => piece !== undefined && "SpecialToken" in piece;
  return {
    add_bos_token: isBert || (template ? isSpecial(template[0]) : settings.add_bos_token === true),
    add_eos_token: isBert || (template ? isSpecial(template.at(-1)) : settings.add_eos_token === true),
  };
}

function chatTemplate(companions: Companions, settings: JsonObject): Facts {
  const own = companions["chat_template.jinja"];
  if (own !== undefined) return { "tokenizer.chat_template": { text: new TextDecoder().decode(own) } };
  const given = settings.chat_template ?? jsonIn(companions, "chat_template.json").chat_template;
  if (typeof given === "string") return { "tokenizer.chat_template": { text: given } };
  const several = (Array.isArray(given) ? given : []) as {
    readonly name: string;
    readonly template: string;
  }[];
  return Object.fromEntries(
    several.map(({ name, template }) => [
      name === "default" ? "tokenizer.chat_template" : `tokenizer.chat_template.${name}`,
      { text: template },
    ]),
  );
}

function jsonIn(companions: Companions, name: string): JsonObject {
  const bytes = companions[name];
  return bytes === undefined ? {} : JSON.parse(new TextDecoder().decode(bytes));
}

/** The steps of a part, in order, without sequences. */
function stepsIn(step: Step | null): Step[] {
  if (step === null) return [];
  if (step.type !== "Sequence") return [step];
  return (step.normalizers ?? step.pretokenizers ?? []).flatMap(stepsIn);
}

function lacksTokenizer(got: string): Error {
  return exportError("a tokenizer that llama.cpp has", got, {
    hint: "without tokenizer.json, the file takes tokens alone",
  });
}
