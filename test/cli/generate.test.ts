import { execFile } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { dematerialize, type Module, materialize } from "../../src/compute/nn/index.ts";
import { noGrad, scope, tensor } from "../../src/compute/tensor/index.ts";
import { Runtime } from "../../src/entries/index.ts";
import { saveHuggingFaceFolder } from "../../src/library/checkpoint/index.ts";
import { tokenizerFromSpec } from "../../src/library/data/index.ts";
import { applyDelta, lora, prefix, saveDelta, softPrompt } from "../../src/library/deltas/index.ts";
import {
  BartForConditionalGeneration,
  GPT2LMHeadModel,
  generate,
  T5ForConditionalGeneration,
  weightBytes,
} from "../../src/library/models/index.ts";
import { Workspace } from "../fixtures/run-tiny.ts";

const troupe = fileURLToPath(new URL("../../bin/troupe.mjs", import.meta.url));

function command(...args: string[]): Promise<{ code: number | null; out: string; err: string }> {
  return new Promise((resolve) => {
    const child = execFile(process.execPath, [troupe, "generate", ...args], (_error, out, err) => {
      resolve({ code: child.exitCode, out, err });
    });
  });
}

/** The `count` most likely tokens after a prompt, one after the other, each by a complete forward. */
function likeliest(model: GPT2LMHeadModel, prompt: readonly number[], count: number): number[] {
  const row = [...prompt];
  for (let written = 0; written < count; written++) {
    const logits = scope(() => {
      const ids = tensor([row], { dtype: "int64" });
      const all = noGrad(() => model.forward(ids).logits).toTypedArray() as Float32Array;
      return all.slice(-40);
    });
    row.push(logits.indexOf(Math.max(...logits)));
  }
  return row.slice(prompt.length);
}

/** Gives what is tuned values that are told apart from the base's. */
function shake(model: Module): void {
  for (const [name, parameter] of model.namedParameters())
    if (parameter.role === "delta")
      noGrad(() =>
        scope(() => {
          const values = Float32Array.from(
            { length: parameter.numel },
            (_, index) => Math.sin(7 * index + name.length) / 2,
          );
          parameter.tensor.copy_(tensor(values, { shape: parameter.shape }));
        }),
      );
}

describe("troupe generate", () => {
  let folder: string;
  const prompts = [[1, 2, 3], [4]];
  const expected: Record<string, number[][]> = {};

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "troupe-generate-"));
    const gpt2 = new GPT2LMHeadModel({ vocab_size: 40, n_positions: 32, n_embd: 16, n_layer: 2, n_head: 2 });
    const t5 = new T5ForConditionalGeneration({
      vocab_size: 40,
      d_model: 16,
      d_kv: 8,
      d_ff: 16,
      num_layers: 1,
      num_heads: 2,
    });
    for (const [name, model] of Object.entries({ gpt2, t5 })) {
      materialize(model, { seed: 5 });
      await saveHuggingFaceFolder(join(folder, name), {
        config: model.configJson,
        weights: weightBytes(model),
      });
      const options = name === "gpt2" ? { temperature: 0 } : { numBeams: 3 };
      const texts = generate(model, prompts, { maxNewTokens: 6, stopTokens: [], ...options });
      expected[name] = texts.map((text, row) => text.slice(name === "t5" ? 1 : prompts[row]?.length));
      dematerialize(model);
    }
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  const asked = ["--tokens", "--max-new-tokens", "6", "--prompt", "1,2,3", "4"];
  const answered = (out: string) =>
    out
      .trim()
      .split("\n")
      .map((line) => line.split(",").map(Number));

  it("writes what `generate` writes, of a decoder and of an encoder-decoder's folder", async () => {
    const continued = await command(join(folder, "gpt2"), ...asked);
    expect(continued.err).toBe("");
    expect(answered(continued.out)).toEqual(expected.gpt2);
    const replied = await command(join(folder, "t5"), ...asked, "--beams", "3");
    expect(replied.err).toBe("");
    expect(answered(replied.out)).toEqual(expected.t5);
    const config = JSON.parse(readFileSync(join(folder, "t5", "config.json"), "utf8")) as object;
    expect(config).toMatchObject({ architectures: ["T5ForConditionalGeneration"] });
  });

  it("gives a prompt the tokenizer's marks: those before it to a decoder, all to an encoder-decoder", async () => {
    const mark = (id: number) => ({ id: `w${id}`, ids: [id], tokens: [`w${id}`] });
    const json = {
      ...{ version: "1.0", added_tokens: [], normalizer: null, decoder: null },
      pre_tokenizer: { type: "Whitespace" },
      model: {
        ...{ type: "WordLevel", unk_token: "w0" },
        vocab: Object.fromEntries(Array.from({ length: 40 }, (_, word) => [`w${word}`, word])),
      },
      post_processor: {
        ...{ type: "TemplateProcessing", pair: [], special_tokens: { w9: mark(9), w2: mark(2) } },
        single: [
          { SpecialToken: { id: "w9", type_id: 0 } },
          { Sequence: { id: "A", type_id: 0 } },
          { SpecialToken: { id: "w2", type_id: 0 } },
        ],
      },
    };
    const tokenizer = tokenizerFromSpec({ kind: "hugging-face", tokenizer: json });
    // Weights so large that every token of a prompt changes what follows.
    const gpt2 = {
      ...{ vocab_size: 40, n_positions: 32, n_embd: 16, n_layer: 1, n_head: 2 },
      ...{ initializer_range: 1, eos_token_id: 2 },
    };
    const bart = {
      ...{ vocab_size: 40, d_model: 16, encoder_layers: 1, decoder_layers: 1, max_position_embeddings: 32 },
      ...{ encoder_attention_heads: 2, decoder_attention_heads: 2, encoder_ffn_dim: 16, decoder_ffn_dim: 16 },
      ...{ init_std: 1, eos_token_id: 2 },
    };
    for (const [model, marked, before] of [
      [new GPT2LMHeadModel(gpt2), [9, 5, 6], [5, 6]],
      [new BartForConditionalGeneration(bart), [9, 5, 6, 2], []],
    ] as const) {
      materialize(model, { seed: 5 });
      const path = join(folder, `marked-${model.constructor.name}`);
      await saveHuggingFaceFolder(path, { config: model.configJson, weights: weightBytes(model) });
      writeFileSync(join(path, "tokenizer.json"), JSON.stringify(json));
      const options = { maxNewTokens: 6, temperature: 0 };
      const written = generate(model, marked, options).slice(before.length === 0 ? 1 : marked.length);
      dematerialize(model);
      const text = tokenizer.decode([...before, ...written.filter((token) => token !== 2)]);
      const { out, err } = await command(path, "--prompt", "w5 w6", "--max-new-tokens", "6");
      expect([out, err]).toEqual([`${text}\n`, ""]);
    }
  });

  it("reads a config.json of unknown origin and unknown fields as plain data", async () => {
    const { architectures: _, ...fields } = JSON.parse(
      readFileSync(join(folder, "gpt2", "config.json"), "utf8"),
    ) as Record<string, unknown>;
    const bare = join(folder, "bare");
    cpSync(join(folder, "gpt2"), bare, { recursive: true });
    writeFileSync(
      join(bare, "config.json"),
      JSON.stringify({ ...fields, n_ctx: 32, torch_dtype: "float32" }),
    );
    const { err, out } = await command(bare, ...asked);
    expect(err).toBe("");
    expect(answered(out)).toEqual(expected.gpt2);
  });

  it.each(["lora", "prefix"] as const)(
    "writes with what was tuned of a model, as a checkpoint has it: %s",
    async (kind) => {
      const delta = {
        lora: lora({ rank: 2, alpha: 4, target: ["c_attn"] }),
        prefix: prefix({ numTokens: 3 }),
      }[kind];
      const base = join(folder, "gpt2");
      const config = JSON.parse(readFileSync(join(base, "config.json"), "utf8")) as object;
      const model = applyDelta(new GPT2LMHeadModel(config).eval(), delta);
      materialize(model, { seed: 5 });
      shake(model);
      const tuned = join(folder, kind);
      await saveDelta(tuned, model);
      const expectedTokens = prompts.map((prompt) => likeliest(model, prompt, 6));
      dematerialize(model);
      expect(expectedTokens).not.toEqual(expected.gpt2);

      const unnamed = await command(tuned, ...asked);
      expect(unnamed).toMatchObject({ code: 2, out: "" });
      expect(unnamed.err).toMatch(
        /expected the folder of the model that was tuned, got null in .*--base names it/,
      );
      const named = await command(tuned, ...asked, "--base", base);
      expect(named.err).toBe("");
      expect(answered(named.out)).toEqual(expectedTokens);
      const file = join(tuned, "adapter_config.json");
      const fields = JSON.parse(readFileSync(file, "utf8")) as object;
      writeFileSync(file, JSON.stringify({ ...fields, base_model_name_or_path: base }));
      expect(answered((await command(tuned, ...asked)).out)).toEqual(expectedTokens);
    },
  );

  it("refuses to write behind virtual tokens, which no kept position stands for", async () => {
    const base = join(folder, "gpt2");
    const config = JSON.parse(readFileSync(join(base, "config.json"), "utf8")) as object;
    const model = applyDelta(new GPT2LMHeadModel(config), softPrompt({ numTokens: 3 }));
    materialize(model, { seed: 5 });
    const tuned = join(folder, "softPrompt");
    await saveDelta(tuned, model);
    dematerialize(model);
    const { err, out } = await command(tuned, ...asked, "--base", base);
    expect(out).toBe("");
    expect(err).toMatch(
      /^troupe: \[delta\] expected a model that can generate, got a GPT2LMHeadModel with a soft prompt/,
    );
  });

  it.each(["character", "byte"] as const)(
    "reads and writes a run's checkpoint with the tokenizer that the run had: %s",
    async (kind) => {
      using workspace = new Workspace();
      const dir = workspace.path("run");
      await using runtime = await Runtime.spawn({ ranks: 1, steps: 2, checkpoint: { dir } });
      const small = { layers: 1, width: 32, context: 32, sampleTokens: 0, evaluationSamples: 2 };
      await runtime.run(new URL("../../examples/gpt/job.ts", import.meta.url), {
        ...small,
        data: workspace.text,
        tokenizer: kind,
      });
      const checkpoint = join(dir, "step-000002");
      const tokenizer = tokenizerFromSpec(
        kind === "byte" ? { kind } : { kind, characters: "\n .0123456789eimst" },
      );
      const settings = ["--max-new-tokens", "12", "--seed", "3"];
      const written = await command(checkpoint, "--prompt", "7 times ", ...settings);
      expect(written.err).toBe("");
      const prompt = [...tokenizer.encode("7 times ")];
      const { out } = await command(checkpoint, "--tokens", "--prompt", prompt.join(), ...settings);
      expect(out.split(",")).toHaveLength(12);
      expect(written.out).toBe(`${tokenizer.decode([...prompt, ...out.split(",").map(Number)])}\n`);
    },
  );

  it("refuses what cannot be by name, before anything is written", async () => {
    const beside = await command(join(folder, "gpt2"), ...asked, "--beams", "2", "--top-k", "3");
    expect(beside).toMatchObject({ code: 2, out: "" });
    expect(beside.err).toMatch(/\[generate\] expected no topK with numBeams/);
    const nowhere = await command(join(folder, "none"), ...asked);
    expect(nowhere).toMatchObject({ code: 2, out: "" });
    expect(nowhere.err).toMatch(/config\.json/);
    for (const step of ["step-000002", "step-000010"])
      mkdirSync(join(folder, "run", step), { recursive: true });
    const run = await command(join(folder, "run"), ...asked);
    expect(run.err).toMatch(/expected an intact checkpoint in .*run, got 2 damaged/);
  });

  it("takes a run's newest complete checkpoint, or a state by its name", async () => {
    using workspace = new Workspace();
    const dir = workspace.path("run");
    await using runtime = await Runtime.spawn({ ranks: 1, steps: 3, checkpoint: { dir, everySteps: 1 } });
    const small = { layers: 1, width: 32, context: 32, sampleTokens: 0, evaluationSamples: 2 };
    await runtime.run(new URL("../../examples/gpt/job.ts", import.meta.url), {
      ...small,
      data: workspace.text,
    });
    const written = async (path: string) => {
      const { err, out } = await command(path, ...asked);
      expect(err).toBe("");
      return out;
    };
    const [first, , third] = [1, 2, 3].map((step) => join(dir, `step-00000${step}`));
    expect(await written(dir)).toBe(await written(third as string));
    rmSync(join(third as string, "manifest.json"));
    rmSync(join(dir, "step-000002"), { recursive: true });
    writeFileSync(join(dir, "named.json"), JSON.stringify({ best: { step: 1 } }));
    const ofFirst = await written(first as string);
    expect(await written(dir)).toBe(ofFirst);
    expect(await written(join(dir, "best"))).toBe(ofFirst);
    for (const step of [first, third]) rmSync(step as string, { recursive: true });
    const none = await command(dir, ...asked);
    expect(none.out).toBe("");
    expect(none.err).toBe(
      `troupe: [checkpoint] expected a checkpoint in ${dir}, got none (the run that this folder belongs to has saved none)\n`,
    );
  });
});
