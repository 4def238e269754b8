import { spawn } from "node:child_process";
import { cpSync, existsSync, readdirSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findChromium, launchChromium } from "../../scripts/chromium.ts";
import { dematerialize } from "../../src/compute/nn/index.ts";
import { scope } from "../../src/compute/tensor/index.ts";
import { exportModel } from "../../src/library/export/index.ts";
import { type GenerativeModel, generate } from "../../src/library/models/index.ts";
import { sharedPath } from "../fixtures/shared.ts";
import { installed } from "./installed.ts";
import {
  batchOf,
  camel,
  difference,
  type Given,
  inputsOf,
  modelOf,
  type Outputs,
  ours,
} from "./onnx-model.ts";

const golden = sharedPath("golden");
const chromium = findChromium();
const example = fileURLToPath(new URL("../../examples/export/app", import.meta.url));

/** transformers.js' classes by task. */
const classes: Readonly<Record<string, string>> = {
  causal_lm: "AutoModelForCausalLM",
  seq2seq_lm: "AutoModelForSeq2SeqLM",
  masked_lm: "AutoModelForMaskedLM",
  sequence_classification: "AutoModelForSequenceClassification",
  token_classification: "AutoModelForTokenClassification",
  question_answering: "AutoModelForQuestionAnswering",
  image_classification: "AutoModelForImageClassification",
  image_text: "CLIPModel",
  speech_recognition: "AutoModelForCTC",
};

/** A function of the page: opens a model, and calls it, or generates. */
const call = `async ({ name, type, given, generates }) => {
  const library = await import("@huggingface/transformers");
  const model = await library[type].from_pretrained(name, { dtype: "fp32", device: "wasm" });
  const tensors = Object.fromEntries(given.map(([key, { values, shape }]) => {
    const isFloat = key.endsWith("_values");
    const data = isFloat ? Float32Array.from(values) : BigInt64Array.from(values, BigInt);
    return [key, new library.Tensor(isFloat ? "float32" : "int64", data, shape)];
  }));
  const made = generates ? { tokens: await model.generate({ ...tensors, ...generates }) } : await model(tensors);
  await model.dispose();
  const outputs = Object.entries(made).filter(([, value]) => value instanceof library.Tensor);
  return Object.fromEntries(outputs.map(([key, { data, dims }]) => [key, { values: Array.from(data, Number), shape: dims }]));
}`;

describe.skipIf(golden === undefined || chromium === undefined)("transformers.js, in a page", () => {
  let place: string;
  let browser: Browser;
  let page: Page;
  let stop: () => void;
  beforeAll(async () => {
    place = await mkdtemp(join(tmpdir(), "troupe-transformers-"));
    const app = installed("transformers");
    cpSync(example, app, { recursive: true, filter: (path) => !path.endsWith("package.json") });
    const server = spawn(process.execPath, [join(app, "serve.mjs"), place, "0"]);
    stop = () => server.kill();
    const url = await new Promise<string>((resolve) =>
      server.stdout.once("data", (data) => resolve(`${data}`.trim())),
    );
    browser = await launchChromium(chromium as string);
    page = await browser.newPage();
    await page.goto(url);
  });
  afterAll(async () => {
    await browser?.close();
    stop?.();
    await rm(place, { recursive: true });
  });

  const run = (name: string, type: string, given: Readonly<Record<string, Given>>, generates?: object) =>
    page.evaluate(
      `(${call})(${JSON.stringify({ name, type, given: Object.entries(given), generates })})`,
    ) as Promise<Outputs>;

  const folders = (golden === undefined ? [] : readdirSync(golden).map((name) => join(golden, name))).filter(
    (path) => existsSync(join(path, "model.safetensors")),
  );
  const writers = folders.filter((path) => /\/(t5|t5-untied|bart|gpt2|llama)$/.test(path));
  // transformers.js knows no data2vec.
  const readers = folders.filter(
    (path) => !/\/(t5|t5-untied|bart|gpt2|gpt2-padded|llama|bert-pretraining|data2vec-.*)$/.test(path),
  );

  it.each(readers)("computes what the model of %s computes", async (path) => {
    const name = basename(path);
    const { task } = await exportModel(path, join(place, name), { to: "onnx" });
    const { model } = await modelOf(path);
    const hasTypes = Number(model.configJson.type_vocab_size ?? 0) > 1;
    const names = inputsOf(task).filter((each) => each !== "token_type_ids" || hasTypes);
    const batch = batchOf(model, names);
    const outputs = await run(name, classes[task] ?? "AutoModel", batch);
    scope(() => {
      const expected = ours(model, batch);
      const compared = Object.entries(outputs).filter(([key]) => camel(key) in expected);
      expect(compared.length).toBeGreaterThan(0);
      for (const [key, value] of compared)
        expect(difference(value, expected[camel(key)] as (typeof expected)[string])).toBeLessThan(1e-4);
    });
    dematerialize(model);
  });

  it.each(writers)("writes the tokens that generate writes by the model of %s", async (path) => {
    const name = basename(path);
    const { task } = await exportModel(path, join(place, name), { to: "onnx" });
    const { model } = await modelOf(path);
    // An end is where both programs stop.
    const { eos_token_id: end } = JSON.parse(await readFile(join(path, "config.json"), "utf8"));
    const stopTokens = [end].flat();
    for (let row = 0; row < 10; row++) {
      const prompt = Array.from({ length: 3 + (row % 5) }, (_, at) => 4 + ((row * 17 + at * 29) % 120));
      const shape = [1, prompt.length];
      const given = {
        inputs: { values: prompt, shape },
        attention_mask: { values: prompt.map(() => 1), shape },
      };
      const { tokens } = await run(name, classes[task] ?? "", given, { max_new_tokens: 8, do_sample: false });
      const [text = []] = generate(model as unknown as GenerativeModel, [prompt], {
        maxNewTokens: 8,
        temperature: 0,
        stopTokens,
      });
      expect(tokens?.values).toEqual(text);
    }
    dematerialize(model);
  });
});
