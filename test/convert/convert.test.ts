import { mkdir, readdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  openCheckpoint,
  SafetensorsFile,
  writeCheckpoint,
  writeSafetensors,
} from "../../src/library/checkpoint/index.ts";
import { convert } from "../../src/library/convert/index.ts";
import { contentOf } from "../checkpoint/content.ts";
import { refusal } from "../checkpoint/refusal.ts";
import { goldenPath } from "../golden/golden.ts";
import { temporaryFolder } from "../service/temporary-folder.ts";
import { contentAt } from "./content-at.ts";
import { smallBert, smallGpt, smallT5, writeModel } from "./models.ts";

async function floats(path: string, name: string): Promise<number[]> {
  await using file = await SafetensorsFile.open(path);
  return [...new Float32Array((await file.read(name)).buffer)];
}

const layouts = [1, 2, 4].flatMap((tp) =>
  [1, 2].flatMap((pp) => [0, 1, 2, 3].map((version) => ({ tp, pp, version }))),
);

describe("Megatron-LM and back, bit by bit", () => {
  test.each([
    ["GPT-2", smallGpt],
    ["BERT", smallBert],
  ])("%s, for every layout and version", async (_, model) => {
    const folder = await temporaryFolder();
    const hf = await writeModel(folder, model);
    const before = await contentAt(hf);
    expect(Object.keys(before).length).toBe(Object.keys(model.tensors).length);
    for (const megatron of layouts) {
      const { tp, pp, version } = megatron;
      const out = join(folder, `${tp}-${pp}-${version}`);
      await convert(hf, out, { to: "megatron", megatron });
      expect((await readdir(join(out, "iter_0000000"))).length).toBe(tp * pp);
      await convert(out, `${out}-back`, { to: "hf" });
      expect(await contentAt(`${out}-back`)).toEqual(before);
    }
  });

  test("T5, keys and values of its inner attention head by head, both stacks' positions in one table", async () => {
    const folder = await temporaryFolder();
    const hf = await writeModel(folder, smallT5);
    const before = await contentAt(hf);
    for (const [tp, version] of [1, 2, 4].flatMap((ranks) =>
      [0, 1, 2, 3].map((old) => [ranks, old] as const),
    )) {
      const out = join(folder, `${tp}-${version}`);
      await convert(hf, out, { to: "megatron", megatron: { tp, version } });
      await convert(out, `${out}-back`, { to: "hf" });
      expect(await contentAt(`${out}-back`)).toEqual(before);
    }
    await using file = await SafetensorsFile.open(
      join(folder, "2-3", "iter_0000000", "mp_rank_01", "model_optim_rng.safetensors"),
    );
    const name = "model.language_model.decoder.layers.0.inter_attention.key_value.bias";
    await using hfFile = await SafetensorsFile.open(join(hf, "model.safetensors"));
    const bias = async (map: string) => [
      ...new Float32Array((await hfFile.read(`model.decoder.layers.0.encoder_attn.${map}.bias`)).buffer),
    ];
    const [keys, values] = [await bias("k_proj"), await bias("v_proj")];
    // Rank 1 has the last two of four heads of two.
    const expected = [2, 3].flatMap((head) =>
      [keys, values].flatMap((map) => map.slice(2 * head, 2 * head + 2)),
    );
    expect([...new Float32Array((await file.read(name)).buffer)]).toEqual(expected);
    expect(file.tensors.has("model.lm_head.bias")).toBe(true);
    const error = await refusal(() =>
      convert(hf, join(folder, "pp"), { to: "megatron", megatron: { pp: 2 } }),
    );
    expect(error.message).toContain("use pp 1");
    const parted = await writeModel(join(folder, "parted"), { ...smallT5, copies: {} });
    const differ = await refusal(() => convert(parted, join(folder, "never"), { to: "megatron" }));
    expect(differ.message).toContain("Megatron-LM shares one");
  });

  test("one iteration alone, whose config.json lies in the folder of the run", async () => {
    const folder = await temporaryFolder();
    const hf = await writeModel(folder, smallGpt);
    await convert(hf, join(folder, "run"), { to: "megatron" });
    await convert(join(folder, "run", "iter_0000000"), join(folder, "back"), { to: "hf" });
    expect(await contentAt(join(folder, "back"))).toEqual(await contentAt(hf));
  });

  test.skipIf(goldenPath("gpt2") === undefined)("GPT-2 as transformers saved it", async () => {
    const folder = await temporaryFolder();
    const hf = goldenPath("gpt2") as string;
    await convert(hf, join(folder, "megatron"), { to: "megatron", megatron: { tp: 2, pp: 3 } });
    await convert(join(folder, "megatron"), join(folder, "back"), { to: "hf" });
    expect(await contentAt(join(folder, "back"))).toEqual(await contentAt(hf));
  });

  test("rows of queries, keys and values lie in the order of the version, over the heads of each rank", async () => {
    const folder = await temporaryFolder();
    // The numbers of this bias are 0 … 23: queries 0-7, keys 8-15, values 16-23, four heads of two each.
    const first = 10 * 8 + 6 * 8 + 2 * 8 + 8 * 24;
    const hf = await writeModel(folder, smallGpt);
    const rowsOf = async (version: number, rank: number) => {
      const out = join(folder, `${version}-${rank}`);
      await convert(hf, out, { to: "megatron", megatron: { tp: 2, version } });
      const file = join(out, "iter_0000000", `mp_rank_0${rank}`, "model_optim_rng.safetensors");
      const name = "model.language_model.encoder.layers.0.self_attention.query_key_value.bias";
      return (await floats(file, name)).map((value) => value - first);
    };
    expect(await rowsOf(0, 0)).toEqual([0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19]);
    expect(await rowsOf(0, 1)).toEqual([4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23]);
    expect(await rowsOf(1, 0)).toEqual([0, 8, 16, 1, 9, 17, 2, 10, 18, 3, 11, 19]);
    expect(await rowsOf(2, 0)).toEqual([0, 1, 8, 9, 16, 17, 2, 3, 10, 11, 18, 19]);
    expect(await rowsOf(3, 1)).toEqual([4, 5, 12, 13, 20, 21, 6, 7, 14, 15, 22, 23]);
  });

  test("matrices are cut by columns or by rows, the vocabulary filled up to 128 for each rank", async () => {
    const folder = await temporaryFolder();
    const out = join(folder, "megatron");
    await convert(await writeModel(folder, smallGpt), out, { to: "megatron", megatron: { tp: 2, pp: 2 } });
    const shapes = async (rank: string) => {
      await using file = await SafetensorsFile.open(
        join(out, "iter_0000000", rank, "model_optim_rng.safetensors"),
      );
      expect(file.metadata.get("checkpoint_version")).toBe("3.0");
      return Object.fromEntries(
        [...file.tensors.values()].map(({ name, shape }) => [
          name.replace(/^model\.language_model\./, ""),
          shape,
        ]),
      );
    };
    const first = await shapes("mp_rank_01_000");
    expect(first["embedding.word_embeddings.weight"]).toEqual([128, 8]);
    expect(first["encoder.layers.0.self_attention.query_key_value.weight"]).toEqual([12, 8]);
    expect(first["encoder.layers.1.self_attention.dense.weight"]).toEqual([8, 4]);
    expect(first["encoder.layers.1.mlp.dense_h_to_4h.weight"]).toEqual([16, 8]);
    expect(first["encoder.layers.1.mlp.dense_4h_to_h.weight"]).toEqual([8, 16]);
    expect(first["encoder.layers.1.mlp.dense_4h_to_h.bias"]).toEqual([8]);
    const last = await shapes("mp_rank_00_001");
    expect(
      Object.keys(last).filter((name) => /layernorm|embedding/.test(name) && !/layers/.test(name)),
    ).toEqual(["encoder.final_layernorm.bias", "encoder.final_layernorm.weight"]);
    // Each stage counts its layers from 0.
    expect(Object.keys(last).some((name) => name.startsWith("encoder.layers.0."))).toBe(true);
    expect(Object.keys(last).some((name) => name.startsWith("encoder.layers.2."))).toBe(false);
    expect(await readFile(join(out, "latest_checkpointed_iteration.txt"), "utf8")).toBe("0\n");
  });

  test("files of 2020, with other names, an optimizer beside the model and no prefix, are read too", async () => {
    const folder = await temporaryFolder();
    const hf = await writeModel(folder, smallGpt);
    const out = join(folder, "megatron");
    await convert(hf, out, { to: "megatron", megatron: { version: 0 } });
    const rank = join(out, "iter_0000000", "mp_rank_00");
    await using file = await SafetensorsFile.open(join(rank, "model_optim_rng.safetensors"));
    const old = [...file.tensors.values()].map(({ name, dtype, shape }) => ({
      name: name.replace("encoder.", "transformer.").replace("self_attention", "attention"),
      dtype,
      shape,
      read: () => file.read(name),
    }));
    await mkdir(join(folder, "old", "mp_rank_00"), { recursive: true });
    const state = {
      name: "optimizer.state.exp_avg",
      dtype: "U8",
      shape: [1],
      read: () => new Uint8Array(1),
    } as const;
    await writeSafetensors(join(folder, "old", "mp_rank_00", "model.safetensors"), [...old, state]);
    await writeFile(join(folder, "old", "config.json"), JSON.stringify(smallGpt.config));
    // Files of that time do not tell their version.
    const error = await refusal(() => convert(join(folder, "old"), join(folder, "new"), { to: "hf" }));
    expect([error.code, error.message.includes("checkpoint_version")]).toEqual(["CONVERT", true]);
    await convert(join(folder, "old"), join(folder, "new"), { to: "hf", version: 0 });
    expect(await contentAt(join(folder, "new"))).toEqual(await contentAt(hf));
  });

  test("a pickle that would have to be run is refused, and nothing in it runs", async () => {
    const folder = await temporaryFolder();
    await mkdir(join(folder, "mp_rank_00"));
    await writeFile(join(folder, "config.json"), JSON.stringify(smallGpt.config));
    await writeFile(
      join(folder, "mp_rank_00", "model_optim_rng.pt"),
      "\x80\x02cos\nsystem\nU\x04true\x85R.",
      "latin1",
    );
    const error = await refusal(() => convert(folder, join(folder, "out"), { to: "hf" }));
    expect([error.code, error.message]).toEqual(["TORCH_FILE", expect.stringContaining("got os.system")]);
  });

  test("layouts and folders that do not fit are refused, and nothing is left", async () => {
    const folder = await temporaryFolder();
    const hf = await writeModel(folder, smallGpt);
    const to = (megatron: object) => convert(hf, join(folder, "out"), { to: "megatron", megatron });
    expect((await refusal(() => to({ tp: 3 }))).message).toContain("divide heads");
    expect((await refusal(() => to({ pp: 3 }))).message).toContain("divide layers");
    await writeFile(join(hf, "config.json"), JSON.stringify({ ...smallGpt.config, model_type: "bert" }));
    expect((await refusal(() => to({}))).message).toContain("one of gpt2, megatron-bert, blenderbot");
    await writeFile(
      join(hf, "config.json"),
      JSON.stringify({ ...smallGpt.config, tie_word_embeddings: false }),
    );
    expect((await refusal(() => to({}))).message).toContain("tie_word_embeddings");
    await writeFile(join(hf, "config.json"), JSON.stringify({ ...smallGpt.config, vocab_size: 11 }));
    expect((await refusal(() => to({}))).message).toContain("at least 11 rows");
    await writeFile(join(hf, "config.json"), JSON.stringify(smallGpt.config));
    await convert(hf, join(folder, "m"), { to: "megatron", megatron: { tp: 2 } });
    await rename(join(folder, "m/iter_0000000/mp_rank_00"), join(folder, "gone"));
    expect(
      (await refusal(() => convert(join(folder, "m"), join(folder, "out"), { to: "hf" }))).message,
    ).toContain("2 × 1 ranks");
    for (const unused of [{ config: {} }, { version: 2 }]) {
      expect(
        (await refusal(() => convert(hf, join(folder, "out"), { to: "hf", ...unused }))).message,
      ).toContain("leave it out");
    }
    expect((await refusal(() => convert(hf, hf, { to: "hf" }))).message).toContain("expected nothing at");
    expect((await refusal(() => convert(join(folder, "none"), join(folder, "out"), { to: "hf" }))).code).toBe(
      "CONVERT",
    );
    expect((await readdir(folder)).toSorted()).toEqual(["gone", "hf", "m"]);
  });
});

describe("other forms, bit by bit", () => {
  test("Hugging Face in several files, with an index, and back in one", async () => {
    const folder = await temporaryFolder();
    const hf = await writeModel(folder, smallBert);
    const cut = join(folder, "cut");
    await convert(hf, cut, { to: "hf", maxFileBytes: 4096 });
    const files = await readdir(cut);
    expect(files).toContain("model.safetensors.index.json");
    expect(files.filter((file) => /^model-\d{5}-of-\d{5}\.safetensors$/.test(file)).length).toBeGreaterThan(
      3,
    );
    const { metadata, weight_map: map } = JSON.parse(
      await readFile(join(cut, "model.safetensors.index.json"), "utf8"),
    );
    expect(Object.keys(map).length).toBe(Object.keys(smallBert.tensors).length);
    const numel = Object.values(smallBert.tensors).reduce(
      (sum, shape) => sum + shape.reduce((a, b) => a * b, 1),
      0,
    );
    expect(metadata).toEqual({ total_size: 4 * numel });
    expect(await contentAt(cut)).toEqual(await contentAt(hf));
    await convert(cut, join(folder, "one"), { to: "hf" });
    expect((await readdir(join(folder, "one"))).toSorted()).toEqual(["config.json", "model.safetensors"]);
    expect(await contentAt(join(folder, "one"))).toEqual(await contentAt(hf));
  });

  test("a checkpoint to one file, with or without what its optimizer keeps", async () => {
    const folder = await temporaryFolder();
    const run = join(folder, "run");
    await writeCheckpoint(run, contentOf(7));
    const plain = await convert(run, join(folder, "plain.safetensors"), { to: "safetensors" });
    expect(plain).toMatchObject({ from: "troupe", step: 7, numTensors: 2 });
    await convert(run, join(folder, "all.safetensors"), { to: "safetensors", optimizer: true });
    await using all = await SafetensorsFile.open(join(folder, "all.safetensors"));
    expect([...all.tensors.keys()].toSorted()).toEqual([
      "exp_avg.h.0.bias",
      "exp_avg.wte.weight",
      "exp_avg_sq.h.0.bias",
      "exp_avg_sq.wte.weight",
      "h.0.bias",
      "wte.weight",
    ]);
    expect(await floats(join(folder, "plain.safetensors"), "wte.weight")).toEqual(new Array(6).fill(7));
  });

  test("a model of one's own, which has no config.json, to a Hugging Face folder only with one", async () => {
    const folder = await temporaryFolder();
    const run = join(folder, "run");
    await writeCheckpoint(run, { ...contentOf(7), config: {} });
    const error = await refusal(() => convert(run, join(folder, "out"), { to: "hf" }));
    expect(error.message).toMatch(
      /expected a config.json of the model in .*, got an empty one, .*--to safetensors/,
    );
    await convert(run, join(folder, "out"), { to: "hf", config: { model_type: "own" } });
    expect(JSON.parse(await readFile(join(folder, "out", "config.json"), "utf8"))).toEqual({
      model_type: "own",
    });
  });

  test("a Hugging Face folder to a checkpoint, sealed and summed, and a checkpoint to another with all it knows", async () => {
    const folder = await temporaryFolder();
    const hf = await writeModel(folder, smallGpt);
    await convert(hf, join(folder, "run"), { to: "troupe" });
    expect(await contentAt(join(folder, "run"))).toEqual(await contentAt(hf));
    await writeCheckpoint(join(folder, "other"), contentOf(7));
    await convert(join(folder, "other"), join(folder, "copy"), { to: "troupe" });
    await using checkpoint = await openCheckpoint(join(folder, "copy"));
    expect(checkpoint.state).toMatchObject({ step: 7, samplesConsumed: 84, job: { layers: 4 } });
    expect(checkpoint.optimizer.length).toBe(4);
  });
});
