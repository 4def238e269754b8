import { existsSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { dematerialize, materialize } from "../../src/compute/nn/index.ts";
import { openStorage, saveHuggingFaceFolder, writeCheckpoint } from "../../src/library/checkpoint/index.ts";
import { loadTokenizer, tokenizerFromSpec } from "../../src/library/data/index.ts";
import { exportModel } from "../../src/library/export/index.ts";
import { autoModel, type Task, weightBytes } from "../../src/library/models/index.ts";
import { miniGpt2 } from "../data/mini-gpt2.ts";
import { sharedPath } from "../fixtures/shared.ts";
import { charsmapOf } from "./charsmap.ts";
import { LlamaFile } from "./llama-cpp.ts";

const data = sharedPath("data");

let place: string;
beforeAll(async () => {
  place = await mkdtemp(join(tmpdir(), "troupe-gguf-tokens-"));
});
afterAll(() => rm(place, { recursive: true }));

type Files = Readonly<Record<string, string | object>>;

const gpt2 = { model_type: "gpt2", n_embd: 8, n_layer: 1, n_head: 1, n_positions: 64 };

/** Exports a small model with files of a tokenizer. @returns its folder, and the file */
async function exported(
  name: string,
  numWords: number,
  files: Files,
  { task = "causal_lm", config = {} }: { readonly task?: Task; readonly config?: object } = {},
): Promise<{ readonly folder: string; readonly path: string }> {
  const folder = join(place, name);
  await mkdir(folder);
  const fields = "model_type" in config ? config : { ...gpt2, ...config };
  const model = autoModel(task, { ...fields, vocab_size: numWords });
  materialize(model, { seed: 1 });
  await saveHuggingFaceFolder(folder, { config: model.configJson, weights: weightBytes(model) });
  dematerialize(model);
  for (const [file, content] of Object.entries(files))
    await writeFile(join(folder, file), typeof content === "string" ? content : JSON.stringify(content));
  const made = await exportModel(folder, `${folder}-gguf`, { to: "gguf" });
  return { folder, path: join(`${folder}-gguf`, made.files[0] ?? "") };
}

/** Lines of all kinds: words, numbers, contractions, spaces, lines' ends, scripts, marks, pictures. */
const lines = [
  "Once upon a time, there was a thing; it's theirs.",
  "I'LL say they'll've had 12 345 6789 things (and then some).",
  "  two spaces, three   spaces, a tab\tand\n\nline ends \r\n here  ",
  "Grüße aus Köln, naïve café, Ελληνικά, русский, 中文字符, 日本語, العربية",
  "emoji 😀👩‍👩‍👧 and ∑∫√ marks… “quoted” — dashed",
  "x=1;y+=2;// code_here {a:[1,2]} https://example.org/a?b=c&d=%20",
  " leading",
  "trailing ",
  "",
  "a",
  " ",
  "123456789",
  "theth the the12 ant",
];

async function sameTokens(folder: string, path: string, texts: readonly string[] = lines): Promise<void> {
  const ours = await loadTokenizer(folder);
  await using file = await LlamaFile.open(path);
  for (const text of texts)
    expect({ text, tokens: [...file.model.tokenize(text)] }).toEqual({
      text,
      tokens: [...ours.encode(text)],
    });
}

const byteLevel = (use_regex: boolean) => ({
  type: "ByteLevel",
  add_prefix_space: false,
  trim_offsets: true,
  use_regex,
});
const split = (Regex: string) => ({
  type: "Sequence",
  pretokenizers: [
    { type: "Split", pattern: { Regex }, behavior: "Isolated", invert: false },
    byteLevel(false),
  ],
});
const digits = (count: string) =>
  `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}${count}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+`;
const numMini = Object.keys(miniGpt2.model.vocab).length;

/** LLaMA's kind of tokenizer.json: bytes, letters, and words that merge. */
const sentencePiece = (() => {
  const bytes = Array.from(
    { length: 256 },
    (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`,
  );
  const letters = [..."\u2581abcdefghijklmnopqrstuvwxyzABCDEFGHIJ.,ü"];
  const merges = ["\u2581 t", "h e", "\u2581t he", "i n", "\u2581 a", "r e", "in g", "e r"].map((merge) =>
    merge.split(" "),
  );
  const words = ["<unk>", "<s>", "</s>", ...bytes, ...letters, ...merges.map((merge) => merge.join(""))];
  const special = ["<unk>", "<s>", "</s>"].map((content, id) => ({
    id,
    content,
    special: true,
    normalized: false,
  }));
  return {
    version: "1.0",
    added_tokens: special,
    normalizer: {
      type: "Sequence",
      normalizers: [
        { type: "Prepend", prepend: "\u2581" },
        { type: "Replace", pattern: { String: " " }, content: "\u2581" },
      ],
    },
    pre_tokenizer: null,
    post_processor: {
      type: "TemplateProcessing",
      single: [{ SpecialToken: { id: "<s>", type_id: 0 } }, { Sequence: { id: "A", type_id: 0 } }],
      pair: [],
      special_tokens: {},
    },
    decoder: { type: "Sequence", decoders: [{ type: "ByteFallback" }, { type: "Fuse" }] },
    model: {
      type: "BPE",
      unk_token: "<unk>",
      byte_fallback: true,
      vocab: Object.fromEntries(words.map((word, id) => [word, id])),
      merges: merges.map((merge) => merge.join(" ")),
    },
  };
})();

describe("llama.cpp makes the same tokens of texts", () => {
  it.skipIf(data === undefined)("by GPT-2's vocabulary", async () => {
    const read = (name: string) => readFileSync(join(data ?? "", "vocab", name), "utf8");
    const files = { "vocab.json": read("gpt2-vocab.json"), "merges.txt": read("gpt2-merges.txt") };
    const { folder, path } = await exported("gpt2", 50257, files);
    const plays = readFileSync(join(data ?? "", "tinyshakespeare/input.txt"), "utf8")
      .split("\n")
      .slice(0, 1000);
    await sameTokens(folder, path, [...lines, ...plays]);
  });

  it.each([
    ["LLaMA 3's pattern", "llama-bpe", { pre_tokenizer: split(digits("{1,3}")), ignores: true }],
    ["LLaMA 3's pattern with merges", "smaug-bpe", { pre_tokenizer: split(digits("{1,3}")) }],
    ["Qwen2's pattern", "qwen2", { pre_tokenizer: split(digits("")) }],
    [
      "single digits",
      "smollm",
      {
        pre_tokenizer: {
          type: "Sequence",
          pretokenizers: [{ type: "Digits", individual_digits: true }, byteLevel(true)],
        },
      },
    ],
  ])("by byte-level BPE with %s", async (_, name, { pre_tokenizer, ...rest }) => {
    const model = { ...miniGpt2.model, ...("ignores" in rest && { ignore_merges: true }) };
    const { folder, path } = await exported(name, numMini, {
      "tokenizer.json": { ...miniGpt2, pre_tokenizer, model },
    });
    await sameTokens(folder, path);
    await using file = await LlamaFile.open(path);
    const { tokenizer } = file.model.fileInfo.metadata as { tokenizer: { ggml: Record<string, unknown> } };
    expect(tokenizer.ggml.pre).toBe(name);
  });

  it.skipIf(data === undefined).each([true, false])(
    "by BERT's vocabulary, lowercase: %s",
    async (lowercase) => {
      const words = readFileSync(join(data ?? "", "vocab/bert-base-uncased-vocab.txt"), "utf8");
      const files = { "vocab.txt": words, "tokenizer_config.json": { do_lower_case: lowercase } };
      const config = {
        model_type: "bert",
        hidden_size: 8,
        num_attention_heads: 1,
        num_hidden_layers: 1,
        intermediate_size: 8,
      };
      const numWords = words.trimEnd().split("\n").length;
      const { folder, path } = await exported(`bert-${lowercase}`, numWords, files, {
        task: "masked_lm",
        config,
      });
      await sameTokens(folder, path);
    },
  );

  it.each([{ kind: "byte" }, { kind: "character", characters: "\n abcdefgü中😀." }] as const)(
    "by a run's own tokenizer, of kind $kind",
    async (tokenizer) => {
      const own = tokenizerFromSpec(tokenizer);
      const run = join(place, `own-${tokenizer.kind}`);
      const model = autoModel("causal_lm", { ...gpt2, vocab_size: own.vocabSize });
      materialize(model, { seed: 1 });
      const state = { step: 1, seed: 0, samplesConsumed: 0, job: null, tokenizer };
      const content = { state, config: model.configJson, weights: weightBytes(model), optimizer: [] };
      await writeCheckpoint(await openStorage(run), content);
      dematerialize(model);
      const { files } = await exportModel(run, `${run}-gguf`, { to: "gguf" });
      await using file = await LlamaFile.open(join(`${run}-gguf`, files[0] ?? ""));
      for (const text of ["abc üb", "中中a 😀\n.", "  "])
        expect([...file.model.tokenize(text)]).toEqual([...own.encode(text)]);
    },
  );

  it("by LLaMA's SentencePiece, with a token for the beginning", async () => {
    const numWords = Object.keys(sentencePiece.model.vocab).length;
    const files = {
      "tokenizer.json": sentencePiece,
      "tokenizer_config.json": { bos_token: "<s>", eos_token: "</s>" },
    };
    const { folder, path } = await exported("spm", numWords + 5, files);
    await sameTokens(
      folder,
      path,
      lines.filter((line) => line !== ""),
    );
    await using file = await LlamaFile.open(path);
    expect(file.model.tokens).toMatchObject({ bos: 1, eos: 2, shouldPrependBosToken: true });
  });
});

/** T5's kind of tokenizer.json: unigrams with their scores, behind a table of characters. */
const unigrams = (() => {
  const letters = [..."\u2581abcdefghijklmnopqrstuvwxyzü.,;()0123456789'"];
  const words = [
    "\u2581the",
    "th",
    "in",
    "ing",
    "\u2581a",
    "er",
    "\u2581there",
    "and",
    "\u2581leading",
    "trail",
  ];
  const scored = [...letters, ...words].map((token, at) => [token, -(token.length > 1 ? 3 : 6) - at / 64]);
  return {
    version: "1.0",
    added_tokens: [
      { id: 0, content: "<pad>", special: true },
      { id: 1, content: "</s>", special: true },
      { id: 2, content: "<unk>", special: true },
    ],
    normalizer: {
      type: "Precompiled",
      precompiled_charsmap: charsmapOf({ "\t": " ", "\n": " ", "\r": " ", O: "o", ";": "," }),
    },
    pre_tokenizer: {
      type: "Sequence",
      pretokenizers: [
        { type: "WhitespaceSplit" },
        { type: "Metaspace", replacement: "\u2581", add_prefix_space: true },
      ],
    },
    post_processor: {
      type: "TemplateProcessing",
      single: [{ Sequence: { id: "A", type_id: 0 } }, { SpecialToken: { id: "</s>", type_id: 0 } }],
      pair: [],
      special_tokens: { "</s>": { id: "</s>", ids: [1], tokens: ["</s>"] } },
    },
    decoder: { type: "Metaspace", replacement: "\u2581", add_prefix_space: true },
    model: { type: "Unigram", unk_id: 2, vocab: [["<pad>", 0], ["</s>", 0], ["<unk>", 0], ...scored] },
  };
})();

it.each(["as T5 was published", "as transformers writes it now"])(
  "llama.cpp makes the same tokens of texts by unigrams, %s",
  async (form) => {
    const { normalizer } = unigrams;
    const now = {
      normalizer: {
        type: "Sequence",
        normalizers: [
          normalizer,
          { type: "Strip", strip_left: false, strip_right: true },
          { type: "Replace", pattern: { Regex: " {2,}" }, content: "\u2581" },
        ],
      },
      pre_tokenizer: { type: "Metaspace", replacement: "\u2581", prepend_scheme: "always", split: true },
    };
    const numWords = unigrams.model.vocab.length;
    const config = { model_type: "t5", d_model: 8, d_kv: 8, d_ff: 8, num_layers: 1, num_heads: 1 };
    const { folder, path } = await exported(
      `unigrams ${form}`,
      numWords + 5,
      {
        "tokenizer.json": form === "as T5 was published" ? unigrams : { ...unigrams, ...now },
        "tokenizer_config.json": { eos_token: "</s>", pad_token: "<pad>", unk_token: "<unk>" },
      },
      { task: "seq2seq_lm", config },
    );
    await sameTokens(
      folder,
      path,
      lines.filter((line) => line.trim() !== ""),
    );
    await using file = await LlamaFile.open(path);
    expect(file.model.tokens).toMatchObject({ eos: 1 });
    expect(file.model.fileInfo.metadata).toMatchObject({ tokenizer: { ggml: { add_eos_token: true } } });
  },
);

describe("a file", () => {
  const chat = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}";

  it.each<readonly [string, Files]>([
    ["a file of its own", { "chat_template.jinja": chat }],
    ["tokenizer_config.json", { "tokenizer_config.json": { chat_template: chat } }],
    ["a list", { "tokenizer_config.json": { chat_template: [{ name: "default", template: chat }] } }],
  ])("has the chat template of %s", async (where, files) => {
    const { path } = await exported(`chat-${where}`, numMini, { "tokenizer.json": miniGpt2, ...files });
    await using file = await LlamaFile.open(path);
    expect(file.model.fileInfo.metadata).toMatchObject({ tokenizer: { chat_template: chat } });
  });
});

describe("a tokenizer that llama.cpp lacks", () => {
  const { model } = sentencePiece;
  const { "\u2581the": _, ...vocab } = model.vocab;
  it.each([
    [
      "a pattern",
      { ...miniGpt2, pre_tokenizer: split("\\w+|\\W+") },
      /BPE that cuts texts by \\w\+\|\\W\+, then ByteLevel/,
    ],
    ["a normalizer", { ...miniGpt2, normalizer: { type: "Lowercase" } }, /the normalizer Lowercase/],
    ["a model", { ...miniGpt2, pre_tokenizer: { type: "Whitespace" } }, /a BPE tokenizer without bytes/],
    [
      "too many tokens",
      { ...miniGpt2, added_tokens: [{ id: 999, content: "<x>", special: true }] },
      /<x> as number 999/,
    ],
    [
      "halves",
      { ...sentencePiece, model: { ...model, vocab: { ...vocab, the: 20, "\u2581the": 21 } } },
      /halves of "▁the"/,
    ],
  ])("is refused by %s", async (name, json, message) => {
    const numWords = Math.max(...Object.values(json.model.vocab)) + 1;
    await expect(exported(`refused-${name}`, numWords, { "tokenizer.json": json })).rejects.toThrow(message);
    expect(existsSync(join(place, `refused-${name}-gguf`))).toBe(false);
  });
});

describe("a model that llama.cpp lacks is refused", () => {
  it.each<readonly [string, Task, object, RegExp]>([
    [
      "by its activation",
      "causal_lm",
      { activation_function: "relu" },
      /got activation_function relu, which its architecture for gpt2 lacks/,
    ],
    [
      "by its scores",
      "causal_lm",
      { scale_attn_by_inverse_layer_idx: true },
      /divided by the layer's number, which/,
    ],
  ])("%s", async (name, task, config, message) => {
    await expect(
      exported(`lacks-${name}`, numMini, { "tokenizer.json": miniGpt2 }, { task, config }),
    ).rejects.toThrow(message);
  });

  it("by its family", async () => {
    const opt = fileURLToPath(new URL("../golden/states/opt", import.meta.url));
    const made = exportModel(opt, join(place, "opt"), { to: "gguf" });
    await expect(made).rejects.toThrow(
      /got model_type opt, for which no architecture of llama.cpp is known \(--to onnx exports it\)/,
    );
  });

  it("with options of ONNX", async () => {
    const { folder } = await exported("options", numMini, { "tokenizer.json": miniGpt2 });
    await expect(exportModel(folder, join(place, "o"), { to: "gguf", opset: 18 })).rejects.toThrow(
      /got opset/,
    );
    await expect(exportModel(folder, join(place, "o"), { to: "gguf", types: ["q4"] })).rejects.toThrow(
      /expected a type of F32, F16, Q8_0, Q4_K, got q4/,
    );
  });
});
