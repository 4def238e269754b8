import { existsSync, readdirSync } from "node:fs";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as nn from "../../src/compute/nn/index.ts";
import { noGrad, scope, type Tensor } from "../../src/compute/tensor/index.ts";
import { SafetensorsFile } from "../../src/library/checkpoint/index.ts";
import { exportModel, type ForwardSpec, writeOnnx } from "../../src/library/export/index.ts";
import { writeModel } from "../../src/library/export/onnx/write-model.ts";
import { type GenerativeModel, generate } from "../../src/library/models/index.ts";
import { sharedPath } from "../fixtures/shared.ts";
import { canMakeDisks, SmallDisk } from "../fixtures/small-disk.ts";
import {
  asTensor,
  batchOf,
  camel,
  difference,
  type Given,
  inputsOf,
  modelOf,
  OnnxModel,
  type Outputs,
  ours,
} from "./onnx-model.ts";

const golden = sharedPath("golden");
const states = fileURLToPath(new URL("../golden/states", import.meta.url));

/** Folders with a model that is in one of the tasks that can be exported. */
const folders = [golden, states]
  .filter((place) => place !== undefined)
  .flatMap((place) => readdirSync(place).map((name) => join(place, name)))
  .filter((path) => existsSync(join(path, "model.safetensors")) && existsSync(join(path, "config.json")));

/** Runs the files of an export. */
async function theirs(folder: string, batch: Readonly<Record<string, Given>>, ending = ""): Promise<Outputs> {
  const file = (name: string) => join(folder, "onnx", `${name}${ending}.onnx`);
  if (existsSync(file("model"))) return (await OnnxModel.open(file("model"))).run(batch);
  const { last_hidden_state: states } = await (await OnnxModel.open(file("encoder_model"))).run(batch);
  const { attention_mask: mask, decoder_input_ids: ids } = batch;
  const given = { encoder_hidden_states: states, encoder_attention_mask: mask, input_ids: ids };
  return (await OnnxModel.open(file("decoder_model_merged"))).run(given as Record<string, Given>);
}

/** Compares every output of a model but the loss. */
function worst(expected: Readonly<Record<string, Tensor>>, outputs: Outputs): number {
  const names = Object.keys(outputs).filter((name) => camel(name) in expected);
  expect(names.length).toBeGreaterThan(0);
  return Math.max(
    ...names.map((name) => difference(outputs[name] as Given, expected[camel(name)] as Tensor)),
  );
}

let place: string;
beforeAll(async () => {
  place = await mkdtemp(join(tmpdir(), "troupe-onnx-"));
});
afterAll(() => rm(place, { recursive: true }));

describe.skipIf(folders.length === 0)("onnxruntime computes what the model computes", () => {
  it.each(folders)("for %s", async (path) => {
    const target = join(place, basename(path));
    const { model, task } = await modelOf(path);
    if (task === "speech_pretraining") {
      await expect(exportModel(path, target, { to: "onnx" })).rejects.toThrow("speech_pretraining");
      return;
    }
    await exportModel(path, target, { to: "onnx", types: ["fp32", "fp16", "int8"], opset: 18 });
    const hasTypes = Number(model.configJson.type_vocab_size ?? 0) > 1;
    const names = inputsOf(task).filter((name) => name !== "token_type_ids" || hasTypes);
    const { attention_mask: mask, ...rest } = batchOf(model, names);
    // With a past, positions of padding are counted otherwise: rows are padded on the left, below.
    const seen = task === "causal_lm" ? { shape: [3, 14], values: Array<number>(3 * 14).fill(1) } : mask;
    const batch = { ...rest, ...(seen && { attention_mask: seen }) };
    const outputs = await Promise.all(
      ["", "_fp16", "_quantized"].map((ending) => theirs(target, batch, ending)),
    );
    scope(() => {
      const expected = ours(model, batch);
      const [float, half, int8] = outputs.map((each) => worst(expected, each)) as [number, number, number];
      const size = Math.max(...Object.values(expected).map((tensor) => tensor.abs().max().item()), 1);
      expect(float).toBeLessThan(1e-4);
      expect(half).toBeLessThan(0.01 * size);
      expect(int8).toBeLessThan(0.1 * size);
    });
    nn.dematerialize(model);
  });
});

const rowsOf = (rows: readonly (readonly number[])[]): Given => ({
  values: rows.flat(),
  shape: [rows.length, rows[0]?.length ?? 0],
});

/** Adds the likeliest token behind the last position of each row. */
function append(texts: readonly number[][], { values, shape }: Given): void {
  const [, length = 0, words = 0] = shape;
  for (const [row, text] of texts.entries()) {
    const begin = (row * length + length - 1) * words;
    const next = values.slice(begin, begin + words);
    text.push(next.indexOf(Math.max(...next)));
  }
}

/** The keys and values that a file made, as it is given them again. */
function presentOf(outputs: Outputs): Outputs {
  const present = Object.entries(outputs).filter(([name]) => name.startsWith("present."));
  return Object.fromEntries(
    present.map(([name, value]) => [name.replace("present", "past_key_values"), value]),
  );
}

/** Prompts of one length with their masks, padded on the left or the right. */
function padded(prompts: readonly (readonly number[])[], side: "left" | "right") {
  const longest = Math.max(...prompts.map(({ length }) => length));
  const pad = (row: readonly number[]) => Array<number>(longest - row.length).fill(0);
  const join = (row: readonly number[], rest: readonly number[]) =>
    side === "left" ? [...rest, ...row] : [...row, ...rest];
  const ones = (row: readonly number[]) => row.map(() => 1);
  return {
    rows: prompts.map((prompt) => join(prompt, pad(prompt))),
    masks: prompts.map((prompt) => join(ones(prompt), pad(prompt))),
  };
}

/** The likeliest next token of each row, step by step, by a file with a past: what transformers.js does. */
async function written(
  folder: string,
  prompts: readonly (readonly number[])[],
  numTokens: number,
): Promise<number[][]> {
  const model = await OnnxModel.open(join(folder, "onnx", "model.onnx"));
  const { rows, masks } = padded(prompts, "left");
  const texts = prompts.map((prompt) => [...prompt]);
  let ids: number[][] = rows;
  let past: Outputs = {};
  for (let step = 0; step < numTokens; step++) {
    const outputs = await model.run({ input_ids: rowsOf(ids), attention_mask: rowsOf(masks), ...past });
    append(texts, outputs.logits as Given);
    ids = texts.map((text) => text.slice(-1));
    for (const mask of masks) mask.push(1);
    past = presentOf(outputs);
  }
  return texts;
}

/** The same by an encoder and a decoder, which reads the encoder's states at its first call alone: later they are no numbers. */
async function translated(
  folder: string,
  prompts: readonly (readonly number[])[],
  { start, numTokens }: { readonly start: number; readonly numTokens: number },
): Promise<number[][]> {
  const open = (name: string) => OnnxModel.open(join(folder, "onnx", `${name}.onnx`));
  const [encoder, decoder] = await Promise.all([open("encoder_model"), open("decoder_model_merged")]);
  const { rows, masks } = padded(prompts, "right");
  const mask = rowsOf(masks);
  const { last_hidden_state: states } = await encoder.run({ input_ids: rowsOf(rows), attention_mask: mask });
  const { values, shape } = states as Given;
  const none: Given = { shape, values: values.map(() => Number.NaN) };
  const texts = prompts.map(() => [start]);
  let past: Outputs = {};
  for (let step = 0; step < numTokens; step++) {
    const outputs = await decoder.run({
      input_ids: rowsOf(texts.map((text) => text.slice(-1))),
      encoder_attention_mask: mask,
      encoder_hidden_states: step === 0 ? (states as Given) : none,
      use_cache_branch: { values: [Number(step > 0)], shape: [1] },
      ...past,
    });
    append(texts, outputs.logits as Given);
    past = presentOf(outputs);
  }
  return texts;
}

/** A hundred prompts of unequal length. */
const promptsOf = (words: number) =>
  Array.from({ length: 100 }, (_, row) =>
    Array.from({ length: 1 + (row % 9) }, (__, at) => (row * 17 + at * 29 + 3) % words),
  );

describe.skipIf(folders.length === 0)("onnxruntime writes the tokens that generate writes", () => {
  const writers = folders.filter((path) => /gpt2$|gpt2-padded|llama$|gpt-neox|gpt-j|opt$/.test(path));
  const translators = folders.filter((path) => /\/(t5|bart)$/.test(path));
  const options = { maxNewTokens: 8, temperature: 0, stopTokens: [], padToken: 0 };

  it.each(writers)("for 100 prompts of %s", async (path) => {
    const target = join(place, `${basename(path)}-greedy`);
    await exportModel(path, target, { to: "onnx" });
    const { model } = await modelOf(path);
    const prompts = promptsOf(Number(model.configJson.vocab_size));
    const expected = generate(model as unknown as GenerativeModel, prompts, options);
    expect(await written(target, prompts, 8)).toEqual(expected);
    nn.dematerialize(model);
  });

  it.each(translators)("for 100 prompts of %s, the states' keys made once", async (path) => {
    const target = join(place, `${basename(path)}-greedy`);
    await exportModel(path, target, { to: "onnx" });
    const { model } = await modelOf(path);
    const prompts = promptsOf(Number(model.configJson.vocab_size));
    const expected = generate(model as unknown as GenerativeModel, prompts, options);
    const start = Number(model.configJson.decoder_start_token_id);
    expect(await translated(target, prompts, { start, numTokens: 8 })).toEqual(expected);
    nn.dematerialize(model);
  });
});

/** A model of one's own: pictures of any size, through operators of several kinds. */
class OwnModel extends nn.Module {
  readonly conv = new nn.Conv2d(3, 8, 3, { padding: 1, stride: 2 });
  readonly norm = new nn.BatchNorm2d(8);
  readonly inner = new OwnHead();

  override forward(x: Tensor): Tensor {
    return this.inner.forward(this.norm.forward(this.conv.forward(x)).relu());
  }
}

class OwnHead extends nn.Module {
  readonly out = new nn.Linear(8, 5);
  /** Whether it reads a value. */
  reads: "nothing" | "a value" | "an order" | "a view" = "nothing";

  override forward(x: Tensor): Tensor {
    if (this.reads === "a value" && x.sum([0]).max().item() > 0) return x;
    if (this.reads === "an order") return x.sort(0)[0];
    if (this.reads === "a view") {
      x.select(0, 0).mul_(2);
      return x;
    }
    const pooled = x.mean([2, 3]);
    pooled.add_(1);
    const [first = pooled, second = pooled] = this.out
      .forward(pooled)
      .mul(x.shape[2] ?? 1)
      .split(2, 1);
    return first.clamp(-1, 1).add(second.softmax(-1), 0.5);
  }
}

describe.skipIf(golden === undefined)("an adapter", () => {
  it.each(["llama-lora", "bert-lora"])("of %s is merged into its base", async (name) => {
    const of = join(golden ?? "", name);
    const target = join(place, name);
    await exportModel(join(of, "adapter"), target, { to: "onnx", base: join(of, "base") });
    await using file = await SafetensorsFile.open(join(of, "golden.safetensors"));
    const given = await Promise.all(
      ["input.input_ids", "input.attention_mask", "output.logits"].map(
        async (each): Promise<Given | undefined> => {
          if (!file.tensors.has(each)) return undefined;
          const { buffer } = (await file.read(each)).slice();
          const values = each.startsWith("input")
            ? Array.from(new BigInt64Array(buffer), Number)
            : [...new Float32Array(buffer)];
          return { values, shape: file.entry(each).shape };
        },
      ),
    );
    const [ids, mask, logits] = given as [Given, Given | undefined, Given];
    const ones = { shape: ids.shape, values: ids.values.map(() => 1) };
    const types = { shape: ids.shape, values: ids.values.map(() => 0) };
    const outputs = await theirs(target, {
      input_ids: ids,
      attention_mask: mask ?? ones,
      token_type_ids: types,
    });
    scope(() => expect(difference(outputs.logits as Given, asTensor(logits, "float32"))).toBeLessThan(1e-4));
  });
});

it.skipIf(!canMakeDisks)("weights that a full disk cuts short are an error", async () => {
  using disk = new SmallDisk();
  const sizeBytes = 1 << 20;
  const weight = { name: "a", dtype: "uint8", shape: [sizeBytes], sizeBytes } as const;
  const initializers = [{ ...weight, read: async () => new Uint8Array(sizeBytes) }];
  const graph = { nodes: [], initializers, inputs: [], outputs: [] };
  const writing = writeModel(join(disk.path, "model.onnx"), graph, { opset: 17, maxMessageBytes: 0 });
  await expect(writing).rejects.toMatchObject({ code: "ENOSPC" });
});

describe("a model of a class of one's own", () => {
  const spec = (model: OwnModel): ForwardSpec => ({
    inputs: { x: { shape: ["batch", 3, "height", "width"] } },
    run: ({ x }) => ({ y: model.forward(x as Tensor) }),
  });
  const made = () => {
    const model = new OwnModel();
    nn.materialize(model, { seed: 3 });
    model.eval();
    return model;
  };

  it("is computed by onnxruntime for other sizes than those recorded, its weights in a file of their own", async () => {
    const model = made();
    const path = join(place, "own.onnx");
    const files = await writeOnnx(path, model, spec(model), { maxFileBytes: 100 });
    expect(files).toEqual([path, `${path}_data`]);
    const x = {
      shape: [2, 3, 21, 34],
      values: Array.from({ length: 2 * 3 * 21 * 34 }, (_, at) => Math.sin(at)),
    };
    const { y } = await (await OnnxModel.open(path)).run({ x });
    scope(() => {
      const expected = noGrad(() => model.forward(asTensor(x, "float32")));
      expect(difference(y as Given, expected)).toBeLessThan(1e-5);
    });
  });

  it.each([
    ["a value", /inner/],
    ["an order", /operators that ONNX has, got aten::sort in module inner/],
    ["a view", /operators in place on tensors without views, got aten::mul_.Scalar in module inner/],
  ] as const)(
    "is refused by the name of the module that reads %s, and leaves no file",
    async (reads, message) => {
      const model = made();
      model.inner.reads = reads;
      const path = join(place, "refused.onnx");
      await expect(writeOnnx(path, model, spec(model))).rejects.toThrow(message);
      expect(await readdir(place)).not.toContain("refused.onnx");
    },
  );
});
