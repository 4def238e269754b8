import { execFile } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { prepare } from "../../examples/rapidformer/prepare.ts";
import {
  HuggingFaceFolder,
  saveHuggingFaceFolder,
  type TensorSource,
} from "../../src/library/checkpoint/index.ts";
import { type FloatTensor, writeTorch } from "../fixtures/torch/write-torch.ts";

const troupe = fileURLToPath(new URL("../../bin/troupe.mjs", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "troupe-test-"));
const at = (...names: string[]) => join(folder, ...names);

/** A model folder's files that are no weights: the tokenizer's, the chat template, the generation config. */
const companions = {
  "tokenizer_config.json": '{"do_lower_case": true, "tokenizer_class": "BertTokenizer"}',
  "special_tokens_map.json": '{"unk_token": "[UNK]"}',
  "chat_template.jinja": "{{ messages }}",
  "preprocessor_config.json": '{"size": 4}',
  "spiece.model": "\u0000\u00ff",
  "generation_config.json": '{\n  "max_length": 7\n}\n',
};

function run(...args: string[]): Promise<{ code: number | null; out: string; err: string }> {
  return new Promise((resolve) => {
    const child = execFile(process.execPath, [troupe, ...args], { cwd: folder }, (_, out, err) =>
      resolve({ code: child.exitCode, out, err }),
    );
  });
}

/** The line of README.md, with folders in their places. */
function finetune(model: string, ...more: string[]) {
  const readme = readFileSync(new URL("../../README.md", import.meta.url), "utf8");
  const [line = ""] = /^npx troupe finetune .*$/m.exec(readme) ?? [];
  const words = line.split(/\s+#/)[0]?.split(" ").slice(2) ?? [];
  const [name, data] = words.flatMap((word, index) => (word === "FOLDER" ? [index] : []));
  const own = words.with(name ?? -1, model).with(data ?? -1, "glue/mrpc");
  return run(...own, "--no-warm-standby", "--no-events", ...more);
}

const firstLoss = (out: string) =>
  out
    .split("\n")
    .filter((line) => line.startsWith('{"kind":"step.finished"'))
    .map((line) => (JSON.parse(line) as { lossNats: number }).lossNats)[0];

const oneStep = ["--steps", "1", "--json"];

describe("a model's folder on the command line", () => {
  beforeAll(async () => {
    await prepare(folder);
    for (const [name, text] of Object.entries(companions)) writeFileSync(at("bert", name), text);
    await using source = await HuggingFaceFolder.open(at("bert"));
    const tensors = await Promise.all(
      source.names.map(async (name): Promise<FloatTensor> => {
        const { shape } = source.entry(name);
        return { name, shape, bytes: await source.read(name) };
      }),
    );
    const weights = tensors.map(
      ({ name, shape, bytes }): TensorSource => ({ name, dtype: "F32", shape, read: () => bytes }),
    );
    await saveHuggingFaceFolder(at("shards"), { config: source.config, weights }, { maxFileBytes: 100_000 });
    for (const name of ["torch", "torch-shards", "bare"]) {
      mkdirSync(at(name));
      writeFileSync(at(name, "config.json"), JSON.stringify(source.config));
    }
    writeTorch(at("torch", "pytorch_model.bin"), tensors);
    const half = Math.floor(tensors.length / 2);
    const parts = {
      "pytorch_model-1.bin": tensors.slice(0, half),
      "pytorch_model-2.bin": tensors.slice(half),
    };
    for (const [file, own] of Object.entries(parts)) writeTorch(at("torch-shards", file), own);
    const weight_map = Object.fromEntries(
      Object.entries(parts).flatMap(([file, own]) => own.map(({ name }) => [name, file])),
    );
    writeFileSync(at("torch-shards", "pytorch_model.bin.index.json"), JSON.stringify({ weight_map }));
    for (const name of ["shards", "torch", "torch-shards", "bare"])
      cpSync(at("bert/vocab.txt"), at(name, "vocab.txt"));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it("is fine-tuned by README's line as it is printed, with a batch size that is reported, from weights of every form", async () => {
    const one = await finetune("bert", ...oneStep);
    expect({ code: one.code, err: one.err }).toEqual({
      code: 0,
      err: expect.stringContaining("--global-batch-size: 8, as no batch size was given"),
    });
    const loss = firstLoss(one.out);
    expect(loss).toBeGreaterThan(0);
    for (const form of ["shards", "torch", "torch-shards"])
      expect([form, firstLoss((await finetune(form, ...oneStep)).out)]).toEqual([form, loss]);

    // Other weights have another loss, and are drawn where that is asked for alone.
    const fresh = await finetune("bert", "--fresh", ...oneStep, "--save", at("fresh"));
    expect(firstLoss(fresh.out)).toBeGreaterThan(0);
    expect(firstLoss(fresh.out)).not.toBe(loss);
    expect(readdirSync(at("fresh/step-000001"))).toEqual(expect.arrayContaining(Object.keys(companions)));
    const bare = await finetune("bare", "--steps", "1");
    expect([bare.code, bare.out]).toEqual([2, ""]);
    expect(bare.err).toMatch(
      /expected weights in .*bare: .* got config\.json, vocab\.txt \(--fresh draws them/,
    );
  });

  it("gives tuned and converted models its tokenizer, templates and configs, byte for byte", async () => {
    const { code, err } = await finetune("bert", "--steps", "1", "--save", at("tuned"));
    expect({ code, err }).toMatchObject({ code: 0 });
    const resumed = await finetune(
      "bert",
      "--steps",
      "2",
      "--resume",
      at("tuned/step-000001"),
      "--save",
      at("resumed"),
    );
    expect({ code: resumed.code, err: resumed.err }).toMatchObject({ code: 0 });
    await run("checkpoint", "convert", at("resumed/step-000002"), at("converted"), "--to", "hf");
    for (const place of ["tuned/step-000001", "resumed/step-000002", "converted"])
      for (const name of ["vocab.txt", ...Object.keys(companions)])
        expect([place, name, readFileSync(at(place, name), "utf8")]).toEqual([
          place,
          name,
          readFileSync(at("bert", name), "utf8"),
        ]);
  });
});
