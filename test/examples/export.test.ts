import { execFile, spawn } from "node:child_process";
import { cpSync, readdirSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { findChromium, launchChromium } from "../../scripts/chromium.ts";
import { dematerialize, materialize } from "../../src/compute/nn/index.ts";
import { Runtime } from "../../src/entries/index.ts";
import { HuggingFaceFolder, saveHuggingFaceFolder } from "../../src/library/checkpoint/index.ts";
import { HuggingFaceTokenizer } from "../../src/library/data/index.ts";
import { applyDelta, deltaFrom, loadDelta } from "../../src/library/deltas/index.ts";
import { exportModel } from "../../src/library/export/index.ts";
import {
  autoModel,
  copyWeights,
  type GenerativeModel,
  generate,
  pretrained,
  weightBytes,
} from "../../src/library/models/index.ts";
import { miniGpt2 } from "../data/mini-gpt2.ts";
import { installed } from "../export/installed.ts";
import { patience } from "../fixtures/patience.ts";

const chromium = findChromium();
const example = (name: string) => fileURLToPath(new URL(`../../examples/${name}`, import.meta.url));
const prompt = "the llama and the ";
const numTokens = 12;

let place: string;
let expected: string;

/** Tunes a small LLaMA by examples/lora, and exports what it learnt. */
beforeAll(async () => {
  place = await mkdtemp(join(tmpdir(), "troupe-example-"));
  const base = join(place, "base");
  const tokenizer = new HuggingFaceTokenizer(miniGpt2);
  const model = autoModel("causal_lm", {
    model_type: "llama",
    vocab_size: tokenizer.vocabSize,
    hidden_size: 64,
    intermediate_size: 128,
    num_hidden_layers: 2,
    num_attention_heads: 4,
    max_position_embeddings: 128,
    initializer_range: 0.2,
    bos_token_id: null,
    eos_token_id: null,
  });
  materialize(model, { seed: 2 });
  const companions = {
    "tokenizer.json": Buffer.from(JSON.stringify(miniGpt2)),
    "tokenizer_config.json": Buffer.from(
      JSON.stringify({ tokenizer_class: "PreTrainedTokenizerFast", model_max_length: 128 }),
    ),
  };
  await saveHuggingFaceFolder(base, { config: model.configJson, companions, weights: weightBytes(model) });
  dematerialize(model);
  const data = join(place, "text.txt");
  await writeFile(data, "the llama and the ant, then the llama and the other ant.\n".repeat(200));
  const run = join(place, "run");
  {
    await using runtime = await Runtime.spawn({ ranks: 1, warmStandby: false, checkpoint: { dir: run } });
    const config = { data, model: base, steps: 30, batch: 4, length: 32, lr: 1e-2 };
    await runtime.run(example("lora/job.ts"), config);
  }
  const adapter = join(run, readdirSync(run).find((name) => name.startsWith("step-")) ?? "");
  await exportModel(adapter, join(place, "models/tuned"), { to: "onnx", types: ["fp32"], base });
  await exportModel(adapter, join(place, "models/gguf"), { to: "gguf", types: ["F32"], base });
  expected = tokenizer.decode(await written(base, adapter, [...tokenizer.encode(prompt)]));
});
afterAll(() => rm(place, { recursive: true }));

/** The likeliest tokens behind a prompt, by the base with what was tuned. */
async function written(base: string, adapter: string, tokens: readonly number[]): Promise<readonly number[]> {
  await using folder = await HuggingFaceFolder.open(base);
  const model = autoModel("causal_lm", folder.config);
  applyDelta(model, deltaFrom(adapter));
  const { matched } = pretrained(model, new Map(folder.names.map((name) => [name, folder.entry(name)])));
  materialize(model, { seed: 0 });
  await copyWeights(model, matched, folder);
  await loadDelta(adapter, model);
  model.eval();
  const options = { maxNewTokens: numTokens, temperature: 0, stopTokens: [], padToken: 0 };
  const [text = []] = generate(model as unknown as GenerativeModel, [tokens], options);
  dematerialize(model);
  return text;
}

/** Copies the example's folder beside what it needs, as its README does. */
function appIn(name: string): string {
  const folder = installed(name);
  cpSync(example("export/app"), folder, {
    recursive: true,
    filter: (path) => !path.endsWith("package.json"),
  });
  return folder;
}

it("llama.cpp writes in Node what generate writes", async () => {
  const script = join(appIn("llama-cpp"), "write.mjs");
  const [file = ""] = readdirSync(join(place, "models/gguf"));
  const args = [script, join(place, "models/gguf", file), prompt, `${numTokens}`];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  expect(stdout).toBe(`${expected}\n`);
});

it.skipIf(chromium === undefined)("transformers.js writes in a page what generate writes", async () => {
  const server = spawn(process.execPath, [
    join(appIn("transformers"), "serve.mjs"),
    join(place, "models"),
    "0",
  ]);
  const url = await new Promise<string>((resolve) =>
    server.stdout.once("data", (data) => resolve(`${data}`.trim())),
  );
  const browser = await launchChromium(chromium as string);
  try {
    const page = await browser.newPage();
    const complaints: string[] = [];
    page.on("pageerror", (error) => complaints.push(String(error)));
    const strangers: string[] = [];
    page.on("request", (request) => {
      if (!request.url().startsWith(url) && !/^(blob|data):/.test(request.url()))
        strangers.push(request.url());
    });
    await page.goto(`${url}?dtype=fp32&tokens=${numTokens}`);
    await page.locator("button:enabled").waitFor(patience);
    await page.locator("textarea").fill(prompt);
    await page.locator("button").click();
    await page.locator("button:enabled").waitFor(patience);
    expect(await page.locator("output").textContent()).toBe(expected);
    expect({ complaints, strangers }).toEqual({ complaints: [], strangers: [] });
  } finally {
    await browser.close();
    server.kill();
  }
});
