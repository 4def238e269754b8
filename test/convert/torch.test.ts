import { copyFile, cp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { dematerialize, materialize } from "../../src/compute/nn/index.ts";
import {
  HuggingFaceFolder,
  type JsonObject,
  SafetensorsFile,
  TorchFile,
  writeSafetensors,
} from "../../src/library/checkpoint/index.ts";
import { convert } from "../../src/library/convert/index.ts";
import { autoModel, loadWeights } from "../../src/library/models/index.ts";
import { refusal } from "../checkpoint/refusal.ts";
import { temporaryFolder } from "../service/temporary-folder.ts";
import { contentAt } from "./content-at.ts";

// Files of test/fixtures/torch/make.py.
const fixtures = fileURLToPath(new URL("../fixtures/torch/", import.meta.url));

const roberta = {
  model_type: "roberta",
  architectures: ["RobertaForMaskedLM"],
  vocab_size: 9,
  hidden_size: 4,
  intermediate_size: 6,
  num_hidden_layers: 1,
  num_attention_heads: 2,
  max_position_embeddings: 8,
  type_vocab_size: 1,
} as const satisfies JsonObject;

const gpt2 = { model_type: "gpt2", n_layer: 1, n_head: 2, n_embd: 4, n_positions: 6, vocab_size: 5 } as const;

const neox = {
  model_type: "gpt_neox",
  architectures: ["GPTNeoXForCausalLM"],
  vocab_size: 5,
  hidden_size: 4,
  num_hidden_layers: 1,
  num_attention_heads: 2,
  intermediate_size: 6,
  rotary_pct: 1,
  max_position_embeddings: 8,
} as const;

describe("what torch.save wrote", () => {
  test("of a FairSeq model becomes what the same tensors in safetensors do, and a model reads it", async () => {
    const folder = await temporaryFolder();
    await using file = await TorchFile.open(join(fixtures, "fairseq.pt"));
    const tensors = [...file.tensors.values()].map(({ name, dtype, shape }) => ({
      name: name.slice("model.".length),
      dtype,
      shape,
      read: () => file.read(name),
    }));
    await writeSafetensors(join(folder, "same.safetensors"), tensors);
    const options = { to: "hf", config: roberta } as const;
    const { from } = await convert(join(fixtures, "fairseq.pt"), join(folder, "hf"), options);
    expect(from).toBe("fairseq");
    await convert(join(folder, "same.safetensors"), join(folder, "same"), options);
    expect(await contentAt(join(folder, "hf"))).toEqual(await contentAt(join(folder, "same")));
    const model = autoModel("masked_lm", roberta);
    materialize(model, { seed: 0 });
    await using hf = await HuggingFaceFolder.open(join(folder, "hf"));
    await loadWeights(model, hf);
    const words = model.namedParameters().get("roberta.embeddings.word_embeddings.weight");
    expect([...(words?.tensor.toTypedArray() ?? [])].map(Number)).toEqual(
      Array.from({ length: 36 }, (_, at) => at),
    );
    dematerialize(model);
  });

  test("of a model, without a config.json, becomes safetensors of its own names", async () => {
    const folder = await temporaryFolder();
    const { from } = await convert(join(fixtures, "program.pt"), join(folder, "out"), { to: "safetensors" });
    expect(from).toBe("torch");
    await using file = await SafetensorsFile.open(join(folder, "out"));
    const { tensors } = JSON.parse(await readFile(join(fixtures, "expected.json"), "utf8"));
    expect([...file.tensors.keys()].toSorted()).toEqual(Object.keys(tensors).toSorted());
  });

  test("of Megatron-LM's ranks becomes what it is made of again, bit by bit, its version and iteration its own", async () => {
    const folder = await temporaryFolder();
    await cp(join(fixtures, "megatron"), join(folder, "megatron"), { recursive: true });
    await writeFile(join(folder, "megatron", "config.json"), JSON.stringify(gpt2));
    await convert(join(folder, "megatron"), join(folder, "hf"), { to: "hf" });
    const model = autoModel("causal_lm", gpt2);
    materialize(model, { seed: 0 });
    await using hf = await HuggingFaceFolder.open(join(folder, "hf"));
    await loadWeights(model, hf);
    dematerialize(model);
    await convert(join(folder, "hf"), join(folder, "again"), { to: "megatron" });
    const rank = "mp_rank_00/model_optim_rng";
    await using was = await TorchFile.open(join(fixtures, `megatron/iter_0000007/${rank}.pt`));
    await using is = await SafetensorsFile.open(join(folder, `again/iter_0000000/${rank}.safetensors`));
    const model_ = [...was.tensors.keys()].filter((name) => name.startsWith("model."));
    expect([...is.tensors.keys()].toSorted()).toEqual(model_.toSorted());
    for (const name of model_) expect(await is.read(name), name).toEqual(await was.read(name));
  });

  test("of GPT-NeoX, a file for each layer of its pipeline or one for all, becomes a model that transformers names so", async () => {
    const folder = await temporaryFolder();
    const source = join(folder, "neox");
    await cp(join(fixtures, "neox"), source, { recursive: true });
    const config = JSON.stringify(neox);
    await writeFile(join(source, "config.json"), config);
    const { from, step } = await convert(source, join(folder, "hf"), { to: "hf" });
    expect([from, step]).toEqual(["gpt-neox", 9]);
    const model = autoModel("causal_lm", neox);
    materialize(model, { seed: 0 });
    await using hf = await HuggingFaceFolder.open(join(folder, "hf"));
    await loadWeights(model, hf);
    const valuesOf = (name: string) =>
      [...(model.namedParameters().get(name)?.tensor.toTypedArray() ?? [])].map(Number);
    const from0 = (count: number) => Array.from({ length: count }, (_, at) => at);
    expect(valuesOf("lm_head.weight")).toEqual(from0(20));
    expect(valuesOf("gpt_neox.layers.0.attention.query_key_value.weight")).toEqual(
      from0(48).map((at) => at + 8),
    );
    dematerialize(model);
    const whole = join(folder, "complete");
    await mkdir(whole);
    await cp(join(fixtures, "neox", "mp_rank_00_model_states.pt"), join(whole, "mp_rank_00_model_states.pt"));
    await writeFile(join(whole, "config.json"), config);
    await convert(whole, join(folder, "same"), { to: "hf" });
    expect(await contentAt(join(folder, "same"))).toEqual(await contentAt(join(folder, "hf")));

    const rank = (name: string) => join(source, "global_step9", name);
    const refused = async () =>
      (await refusal(() => convert(source, join(folder, "out"), { to: "hf" }))).message;
    await copyFile(rank("layer_00-model_00-model_states.pt"), rank("layer_00-model_01-model_states.pt"));
    expect(await refused()).toMatch(/expected one model-parallel rank in .*, got 2/);
    await rm(rank("layer_00-model_01-model_states.pt"));
    await writeFile(join(source, "config.json"), JSON.stringify({ ...neox, tie_word_embeddings: true }));
    expect(await refused()).toMatch(/expected the model's tensors alone in .*, got 5\.final_linear\.weight/);
    await rm(rank("layer_04-model_00-model_states.pt"));
    expect(await refused()).toMatch(/expected 4\.norm\.weight/);
  });

  test("of a Hugging Face folder, in one file or in several, is read as its safetensors would be", async () => {
    const folder = await temporaryFolder();
    const config = JSON.stringify({ model_type: "bert", architectures: ["BertModel"] });
    const [one, several] = [join(folder, "one"), join(folder, "several")];
    for (const path of [one, several]) {
      await mkdir(path);
      await writeFile(join(path, "config.json"), config);
    }
    await copyFile(join(fixtures, "state.pt"), join(one, "pytorch_model.bin"));
    await copyFile(join(fixtures, "state.pt"), join(several, "pytorch_model-00001-of-00001.bin"));
    await using file = await TorchFile.open(join(fixtures, "state.pt"));
    const weight_map = Object.fromEntries(
      [...file.tensors.keys()].map((name) => [name, "pytorch_model-00001-of-00001.bin"]),
    );
    await writeFile(join(several, "pytorch_model.bin.index.json"), JSON.stringify({ weight_map }));
    for (const path of [one, several]) {
      await using opened = await HuggingFaceFolder.open(path);
      expect(opened.names.toSorted()).toEqual([...file.tensors.keys()].toSorted());
      expect(opened.entry("turned").shape).toEqual([6, 4]);
      expect(await opened.read("turned")).toEqual(await file.read("turned"));
      await convert(path, `${path}-out`, { to: "hf" });
      await using written = await SafetensorsFile.open(join(`${path}-out`, "model.safetensors"));
      for (const name of file.tensors.keys())
        expect(await written.read(name), name).toEqual(await file.read(name));
    }
    // Safetensors beside it are taken.
    await writeSafetensors(join(one, "model.safetensors"), []);
    await using opened = await HuggingFaceFolder.open(one);
    expect(opened.names).toEqual([]);
  });

  test("is refused where it would have to be run, whatever it is called", async () => {
    const folder = await temporaryFolder();
    const out = join(folder, "out");
    for (const name of ["model.pt", "model.bin", "mp_rank_00/model_optim_rng.pt", "hf/pytorch_model.bin"]) {
      const path = join(folder, name);
      await mkdir(join(path, ".."), { recursive: true });
      await copyFile(join(fixtures, "module.pt"), path);
      await writeFile(join(path, "..", "config.json"), JSON.stringify(gpt2));
      const source = name.startsWith("model.") ? path : name.startsWith("hf") ? join(folder, "hf") : folder;
      const { code, message } = await refusal(() =>
        convert(source, out, { to: "hf", ...(source === path && { config: gpt2 }) }),
      );
      expect([code, message]).toEqual([
        "TORCH_FILE",
        expect.stringContaining("torch.nn.modules.linear.Linear"),
      ]);
    }
  });
});
