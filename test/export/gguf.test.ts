import { readdirSync, readFileSync } from "node:fs";
import { cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { dematerialize, materialize } from "../../src/compute/nn/index.ts";
import { noGrad, scope, type Tensor, tensor } from "../../src/compute/tensor/index.ts";
import { SafetensorsFile, saveHuggingFaceFolder } from "../../src/library/checkpoint/index.ts";
import { exportModel } from "../../src/library/export/index.ts";
import {
  autoModel,
  type GenerativeModel,
  generate,
  type TaskModel,
  weightBytes,
} from "../../src/library/models/index.ts";
import { miniGpt2 } from "../data/mini-gpt2.ts";
import { sharedPath } from "../fixtures/shared.ts";
import { LlamaFile } from "./llama-cpp.ts";
import { modelOf } from "./onnx-model.ts";

const golden = sharedPath("golden");
const states = fileURLToPath(new URL("../golden/states", import.meta.url));

let place: string;
beforeAll(async () => {
  place = await mkdtemp(join(tmpdir(), "troupe-gguf-"));
});
afterAll(() => rm(place, { recursive: true }));

/** A tokenizer of as many tokens as a model has words: llama.cpp's program for Node opens no file without one. */
function tokenizerOf(numWords: number): string {
  const vocab = Object.fromEntries(
    Array.from({ length: numWords }, (_, id) => [String.fromCodePoint(0x4e00 + id), id]),
  );
  const { pre_tokenizer, decoder } = miniGpt2;
  const model = { type: "BPE", vocab, merges: [] };
  return JSON.stringify({
    version: "1.0",
    added_tokens: [],
    normalizer: null,
    pre_tokenizer,
    post_processor: null,
    decoder,
    model,
  });
}

/** A vocabulary of BERT's kind. */
function bertWords(numWords: number): string[] {
  const specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"];
  const letters = Array.from({ length: numWords - specials.length }, (_, id) =>
    String.fromCodePoint(0x4e00 + id),
  );
  return [...specials, ...letters];
}

async function withTokenizer(folder: string): Promise<string> {
  const { vocab_size: numWords } = JSON.parse(readFileSync(join(folder, "config.json"), "utf8"));
  await writeFile(join(folder, "tokenizer.json"), tokenizerOf(numWords));
  return folder;
}

/** A folder with a model of random weights. */
async function saved(name: string, config: Readonly<Record<string, unknown>>): Promise<string> {
  const folder = join(place, name);
  const model = autoModel("causal_lm", config);
  materialize(model, { seed: 5 });
  await saveHuggingFaceFolder(folder, { config: model.configJson, weights: weightBytes(model) });
  dematerialize(model);
  return withTokenizer(folder);
}

const llama = {
  model_type: "llama",
  vocab_size: 96,
  hidden_size: 64,
  intermediate_size: 128,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  max_position_embeddings: 128,
  initializer_range: 0.3,
};

const neox = {
  model_type: "gpt_neox",
  vocab_size: 64,
  hidden_size: 32,
  intermediate_size: 64,
  num_hidden_layers: 2,
  num_attention_heads: 2,
  hidden_act: "gelu_new",
  max_position_embeddings: 128,
  initializer_range: 0.5,
};

const rope = (rope_type: string, rest: object = {}) => ({
  rope_parameters: { rope_theta: 10000, rope_type, factor: 4, ...rest },
});

/** Models of every kind that llama.cpp's architectures have, by name. */
const made: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  "LLaMA with biases and a tied output": {
    ...llama,
    attention_bias: true,
    mlp_bias: true,
    tie_word_embeddings: true,
  },
  "LLaMA with wider heads": { ...llama, head_dim: 32 },
  "LLaMA with positions of llama3": {
    ...llama,
    ...rope("llama3", { low_freq_factor: 1, high_freq_factor: 4, original_max_position_embeddings: 16 }),
  },
  "LLaMA with linear positions": { ...llama, ...rope("linear") },
  "LLaMA with positions of yarn": { ...llama, ...rope("yarn", { original_max_position_embeddings: 32 }) },
  Mistral: { ...llama, model_type: "mistral", sliding_window: 64 },
  Qwen2: { ...llama, model_type: "qwen2", tie_word_embeddings: true },
  "Qwen2 with positions of yarn": {
    ...llama,
    model_type: "qwen2",
    ...rope("yarn", { original_max_position_embeddings: 32 }),
  },
  "GPT-NeoX": neox,
  "GPT-NeoX, one half after the other, tied": {
    ...neox,
    use_parallel_residual: false,
    tie_word_embeddings: true,
  },
};

/** Scores of our own. @returns [tokens · vocabulary] */
function scoresOf(model: TaskModel, tokens: readonly number[]): Float32Array {
  return scope(() =>
    noGrad(() => {
      const inputIds = tensor([...tokens], { shape: [1, tokens.length], dtype: "int64" });
      return (model.forward({ inputIds }) as { logits: Tensor }).logits.toTypedArray() as Float32Array;
    }),
  );
}

function worst(scores: readonly number[], expected: Float32Array): number {
  expect(scores.length).toBe(expected.length);
  return scores.reduce(
    (most, score, at) => Math.max(most, Math.abs(score - (expected[at] ?? Number.NaN))),
    0,
  );
}

const promptsOf = (words: number) =>
  Array.from({ length: 100 }, (_, row) =>
    Array.from({ length: 1 + (row % 9) }, (__, at) => (row * 17 + at * 29 + 3) % words),
  );

/**
 * Compares a folder's model and its file: scores of 20 tokens, and 8 tokens behind each of 100 prompts, which rounding to float16
 * may change for five.
 * @param bound - of the scores' differences, beside the largest of them
 */
async function compare(folder: string, bound: number): Promise<void> {
  const target = `${folder}-gguf`;
  const { files } = await exportModel(folder, target, { to: "gguf", types: ["F32", "F16"] });
  const { model } = await modelOf(folder);
  await using file = await LlamaFile.open(join(target, files[0] ?? ""));
  const words = Number(model.configJson.vocab_size);
  const tokens = Array.from({ length: 20 }, (_, at) => (at * 29 + 3) % words);
  const expected = scoresOf(model, tokens);
  const largest = expected.reduce((most, each) => Math.max(most, Math.abs(each)), 0);
  expect(worst((await file.logits(tokens)).flat(), expected)).toBeLessThan(bound * largest);
  const prompts = promptsOf(words);
  const options = { maxNewTokens: 8, temperature: 0, stopTokens: [], padToken: 0 };
  const texts = generate(model as unknown as GenerativeModel, prompts, options);
  const written = async (by: LlamaFile) => {
    const theirs: number[][] = [];
    for (const prompt of prompts) theirs.push(await by.written(prompt, 8));
    return theirs;
  };
  expect(await written(file)).toEqual(texts);
  await using half = await LlamaFile.open(join(target, files[1] ?? ""));
  const equal = (await written(half)).filter((text, row) => text.join() === texts[row]?.join());
  expect(equal.length).toBeGreaterThanOrEqual(95);
  dematerialize(model);
}

describe("llama.cpp computes what the model computes, and writes the tokens that generate writes", () => {
  it.each(Object.keys(made))("for %s", async (name) => {
    const config = made[name] ?? {};
    const folder = await saved(name.replaceAll(/\W+/g, "-"), config);
    // ggml looks GELU up in a table in float16.
    await compare(folder, config.model_type === "gpt_neox" ? 1e-3 : 1e-5);
  });

  const folders = [golden, states]
    .filter((root) => root !== undefined)
    .flatMap((root) => readdirSync(root).map((name) => join(root, name)))
    .filter((path) => /\/(gpt2|gpt2-padded|llama|gpt-neox)$/.test(path));
  it.skipIf(folders.length === 0).each(folders)("for %s", async (path) => {
    const folder = join(place, basename(path));
    await cp(path, folder, { recursive: true });
    await compare(await withTokenizer(folder), /llama$/.test(path) ? 1e-5 : 1e-3);
  });
});

describe.skipIf(golden === undefined)("llama.cpp computes what an encoder computes", () => {
  const names = [
    "bert-sequence-classification",
    "roberta-sequence-classification",
    "bert-pretraining",
    "roberta-masked-lm",
  ];
  it.each(names)("for %s", async (name) => {
    const folder = join(place, name);
    await cp(join(golden ?? "", name), folder, { recursive: true });
    await writeFile(join(folder, "vocab.txt"), bertWords(128).join("\n"));
    const target = `${folder}-gguf`;
    const { files, task } = await exportModel(folder, target, { to: "gguf", types: ["F32"] });
    const { model } = await modelOf(folder);
    await using file = await LlamaFile.open(join(target, files[0] ?? ""));
    const tokens = [2, 7, 9, 33, 12, 55, 80, 3]; // [CLS] … [SEP]
    const expected = scope(() =>
      noGrad(() => {
        const inputIds = tensor(tokens, { shape: [1, 8], dtype: "int64" });
        const batch = { inputIds, attentionMask: inputIds.ne(0).to("int64") };
        if (task === "sequence_classification")
          return (model.forward(batch) as { logits: Tensor }).logits.toTypedArray() as Float32Array;
        const states = (model as unknown as { encode(batch: object): Tensor }).encode(batch);
        return states.mean([1]).toTypedArray() as Float32Array;
      }),
    );
    expect(worst(await file.vector(tokens, expected.length), expected)).toBeLessThan(1e-4);
    dematerialize(model);
  });
});

describe.skipIf(golden === undefined)("an adapter", () => {
  it("of llama-lora is merged into its base", async () => {
    const of = join(golden ?? "", "llama-lora");
    const base = join(place, "lora-base");
    await cp(join(of, "base"), base, { recursive: true });
    await withTokenizer(base);
    const target = join(place, "lora");
    const { files } = await exportModel(join(of, "adapter"), target, { to: "gguf", types: ["F32"], base });
    await using wanted = await SafetensorsFile.open(join(of, "golden.safetensors"));
    const { buffer: ids } = (await wanted.read("input.input_ids")).slice();
    const { buffer: logits } = (await wanted.read("output.logits")).slice();
    const [rows = 0, length = 0] = wanted.entry("input.input_ids").shape;
    const all = Array.from(new BigInt64Array(ids), Number);
    await using file = await LlamaFile.open(join(target, files[0] ?? ""));
    const theirs: number[] = [];
    for (let row = 0; row < rows; row++)
      theirs.push(...(await file.logits(all.slice(row * length, (row + 1) * length))).flat());
    expect(worst(theirs, new Float32Array(logits))).toBeLessThan(1e-4);
  });
});

describe("quantized weights", () => {
  /** exp(mean −log p) of the tokens behind the first. */
  const perplexity = (scores: readonly (readonly number[])[], tokens: readonly number[]) => {
    const losses = scores.slice(0, -1).map((row, at) => {
      const most = row.reduce((a, b) => Math.max(a, b));
      const sum = row.reduce((all, score) => all + Math.exp(score - most), 0);
      return Math.log(sum) + most - (row[tokens[at + 1] ?? 0] ?? 0);
    });
    return Math.exp(losses.reduce((all, loss) => all + loss, 0) / losses.length);
  };

  it("raise the perplexity of the model's own texts by at most 0.5 % with 8 bits and 10 % with 4 bits", async () => {
    const folder = await saved("wide", {
      ...llama,
      hidden_size: 256,
      intermediate_size: 512,
      initializer_range: 0.06,
    });
    const { model } = await modelOf(folder);
    const prompts = Array.from({ length: 8 }, (_, row) => [row * 7]);
    const options = { maxNewTokens: 100, temperature: 1, seed: 3, stopTokens: [], padToken: 0 };
    const texts = generate(model as unknown as GenerativeModel, prompts, options);
    const target = `${folder}-gguf`;
    const types = ["F32", "F16", "Q8_0", "Q4_K"];
    const { files } = await exportModel(folder, target, { to: "gguf", types });
    const means: number[] = [];
    for (const name of files) {
      await using file = await LlamaFile.open(join(target, name));
      const each: number[] = [];
      for (const text of texts) each.push(Math.log(perplexity(await file.logits(text), text)));
      means.push(Math.exp(each.reduce((a, b) => a + b) / each.length));
    }
    const [float = 0, half = 0, eight = 0, four = 0] = means;
    process.stdout.write(
      `perplexity: ${types.map((type, at) => `${type} ${means[at]?.toFixed(4)}`).join(", ")}\n`,
    );
    expect(half / float).toBeLessThan(1.001);
    expect(eight / float).toBeLessThan(1.005);
    expect(four / float).toBeLessThan(1.1);
    dematerialize(model);
  });
});
