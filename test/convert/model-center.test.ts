import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { dematerialize, materialize } from "../../src/compute/nn/index.ts";
import { HuggingFaceFolder, type JsonObject, writeSafetensors } from "../../src/library/checkpoint/index.ts";
import { convert, openSource } from "../../src/library/convert/index.ts";
import { autoModel, loadWeights, type Task, taskOf } from "../../src/library/models/index.ts";
import { refusal } from "../checkpoint/refusal.ts";
import { temporaryFolder } from "../service/temporary-folder.ts";
import { contentAt } from "./content-at.ts";
import { numbered, type SmallModel } from "./models.ts";

type Shapes = Readonly<Record<string, readonly number[]>>;

const [width, heads, inner, words, places, numLayers] = [8, 2, 12, 11, 7, 2];

const merged = (...all: readonly Shapes[]): Shapes => Object.assign({}, ...all);
const map = (name: string, out: number, numInputs: number, bias: boolean): Shapes => ({
  [`${name}.weight`]: [out, numInputs],
  ...(bias && { [`${name}.bias`]: [out] }),
});
const norm = (name: string, bias = true): Shapes => ({
  [`${name}.weight`]: [width],
  ...(bias && { [`${name}.bias`]: [width] }),
});
const table = (name: string, rows: number): Shapes => ({ [`${name}.weight`]: [rows, width] });

/** The differences between the layers of ModelCenter's families. */
interface Form {
  readonly bias: boolean;
  readonly normBias?: boolean;
  readonly ffnBias?: boolean;
  readonly groups?: number;
  readonly gated?: boolean;
  readonly cross?: boolean;
}

// Names are those that ModelCenter's own scripts write (transfer/hug*_bmtrain*.py).
const half = (name: string, { bias, normBias = true, groups = heads }: Form): Shapes => {
  const keys = (width / heads) * groups;
  return merged(
    norm(`${name}.layernorm_before_attention`, normBias),
    map(`${name}.self_attention.project_q`, width, width, bias),
    map(`${name}.self_attention.project_k`, keys, width, bias),
    map(`${name}.self_attention.project_v`, keys, width, bias),
    map(`${name}.self_attention.attention_out`, width, width, bias),
  );
};
const stack = (name: string, form: Form): Shapes => {
  const { normBias = true, ffnBias = form.bias, gated = false, cross = false } = form;
  const layers = Array.from({ length: numLayers }, (_, index) => {
    const layer = `${name}.layers.${index}`;
    return merged(
      half(`${layer}.self_att`, form),
      cross ? half(`${layer}.cross_att`, form) : {},
      norm(`${layer}.ffn.layernorm_before_ffn`, normBias),
      ...(gated ? ["w_0", "w_1"] : ["w"]).map((each) =>
        map(`${layer}.ffn.ffn.w_in.${each}`, inner, width, ffnBias),
      ),
      map(`${layer}.ffn.ffn.w_out`, width, inner, ffnBias),
    );
  });
  return merged(...layers, norm(`${name}.output_layernorm`, normBias));
};

const sizes = {
  vocab_size: words,
  dim_model: width,
  num_heads: heads,
  dim_head: width / heads,
  dim_ff: inner,
};
const encoder = merged(
  table("input_embedding", words),
  table("position_embedding", places),
  stack("encoder", { bias: true }),
);
const wordHead = merged(
  map("lm_head.dense", width, width, true),
  norm("lm_head.layer_norm"),
  map("lm_head.decoder", words, width, true),
);
/** The output layer that its models of BERT's kind keep beside the words and do not read. */
const tied = { "lm_head.decoder.weight": "input_embedding.weight" };
const encoderSizes = { ...sizes, num_layers: numLayers, position_size: places };

interface Published extends SmallModel {
  readonly title: string;
  readonly modelType: string;
}

const published: readonly Published[] = [
  {
    title: "BERT",
    modelType: "bert",
    config: { ...encoderSizes, type_size: 2 },
    tensors: merged(encoder, table("token_type_embedding", 2), wordHead),
    copies: tied,
  },
  {
    title: "BERT with labels for positions",
    modelType: "bert",
    config: { ...encoderSizes, type_size: 2, cls_head: 3 },
    tensors: merged(encoder, table("token_type_embedding", 2), map("cls_projection", 3, width, true)),
  },
  {
    title: "RoBERTa",
    modelType: "roberta",
    config: { ...encoderSizes, type_size: 1, pad_token_id: 1 },
    tensors: merged(encoder, table("token_type_embedding", 1), wordHead),
    copies: tied,
  },
  {
    title: "GPT-2",
    modelType: "gpt2",
    config: encoderSizes,
    tensors: encoder,
  },
  {
    title: "GPT-J",
    modelType: "gptj",
    config: { ...sizes, num_layers: numLayers, pos_rotary_dim: 2 },
    tensors: merged(
      table("input_embedding", words),
      stack("encoder", { bias: false, ffnBias: true }),
      map("output_projection", words, width, true),
    ),
    copies: Object.fromEntries(
      [0, 1].flatMap((index) =>
        ["weight", "bias"].map((kind) => [
          `encoder.layers.${index}.ffn.layernorm_before_ffn.${kind}`,
          `encoder.layers.${index}.self_att.layernorm_before_attention.${kind}`,
        ]),
      ),
    ),
  },
  {
    title: "OPT",
    modelType: "opt",
    config: { ...sizes, num_layers: numLayers, position_size: places - 2, dropout_p: 0 },
    tensors: merged(
      table("input_embedding", words),
      table("position_embedding", places),
      stack("decoder", { bias: true }),
    ),
  },
  {
    title: "LLaMA with grouped heads",
    modelType: "llama",
    config: { ...sizes, num_layers: numLayers, num_heads_kv: 1 },
    tensors: merged(
      table("input_embedding", words),
      stack("encoder", { bias: false, normBias: false, groups: 1, gated: true }),
      map("output_projection", words, width, false),
    ),
  },
  ...[false, true].map((isGated) => ({
    title: isGated ? "T5 of release 1.1" : "T5 whose output is not divided",
    modelType: "t5",
    config: {
      ...sizes,
      num_encoder_layers: numLayers,
      num_decoder_layers: numLayers,
      position_bias_num_buckets: 4,
      ...(isGated && { ffn_activate_fn: "gated_gelu_new", tied: false }),
    } as JsonObject,
    tensors: merged(
      table("input_embedding", words),
      { "position_bias_enc.relative_attention_bias": [4, heads] },
      { "position_bias_dec.relative_attention_bias": [4, heads] },
      stack("encoder", { bias: false, normBias: false, gated: isGated }),
      stack("decoder", { bias: false, normBias: false, gated: isGated, cross: true }),
      isGated ? map("output_projection", words, width, false) : {},
    ),
  })),
];

async function written({ config, ...model }: SmallModel): Promise<{ folder: string; path: string }> {
  const folder = await temporaryFolder();
  const path = join(folder, "there");
  await mkdir(path);
  await writeFile(join(path, "config.json"), JSON.stringify(config));
  await writeSafetensors(join(path, "pytorch_model.safetensors"), numbered({ config, ...model }));
  return { folder, path };
}

describe("a model of ModelCenter's", () => {
  test.each(published)(
    "$title becomes Hugging Face's $modelType, which the model reads, and ModelCenter's again, bit by bit",
    async ({ title: _, modelType, ...model }) => {
      const { folder, path } = await written(model);
      const converted = await convert(path, join(folder, "hf"), { to: "hf" });
      expect(converted.from).toBe("model-center");
      await using hf = await HuggingFaceFolder.open(join(folder, "hf"));
      expect(hf.config.model_type).toBe(modelType);
      const own = autoModel(taskOf(hf.config) as Task, hf.config);
      materialize(own, { seed: 0 });
      await loadWeights(own, hf);
      dematerialize(own);
      await convert(join(folder, "hf"), join(folder, "again"), { to: "modelcenter" });
      const weights = "pytorch_model.safetensors";
      expect(await contentAt(join(folder, "again", weights))).toEqual(await contentAt(join(path, weights)));
      const again = JSON.parse(await readFile(join(folder, "again", "config.json"), "utf8"));
      expect(again).toMatchObject(model.config);
    },
  );

  test("has GPT-2's queries, keys and values one below the other, rows for outputs", async () => {
    const { folder, path } = await written(
      published.find(({ modelType }) => modelType === "gpt2") as Published,
    );
    await convert(path, join(folder, "hf"), { to: "hf" });
    await using hf = await HuggingFaceFolder.open(join(folder, "hf"));
    const fused = new Float32Array((await hf.read("transformer.h.1.attn.c_attn.weight")).slice().buffer);
    const source = await openSource(join(path, "pytorch_model.safetensors"));
    for (const [third, name] of ["project_q", "project_k", "project_v"].entries()) {
      const tensor = source.tensors.get(`encoder.layers.1.self_att.self_attention.${name}.weight`);
      const rows = new Float32Array((await tensor?.read())?.slice().buffer as ArrayBuffer);
      // [out, in] there, a column of [in, 3 out] here.
      expect(fused[2 * 3 * width + third * width + 5]).toBe(rows[5 * width + 2]);
    }
    await source.close();
  });

  test("has BERT's norms one place further on: what comes out of a layer is normed in the next", async () => {
    const { folder, path } = await written(published[0] as Published);
    await convert(path, join(folder, "hf"), { to: "hf" });
    await using hf = await HuggingFaceFolder.open(join(folder, "hf"));
    const source = await openSource(join(path, "pytorch_model.safetensors"));
    const pairs = [
      ["encoder.layers.0.self_att.layernorm_before_attention", "bert.embeddings.LayerNorm"],
      ["encoder.layers.0.ffn.layernorm_before_ffn", "bert.encoder.layer.0.attention.output.LayerNorm"],
      ["encoder.layers.1.self_att.layernorm_before_attention", "bert.encoder.layer.0.output.LayerNorm"],
      ["encoder.output_layernorm", "bert.encoder.layer.1.output.LayerNorm"],
    ];
    for (const [there, here] of pairs)
      expect(await source.tensors.get(`${there}.weight`)?.read()).toEqual(await hf.read(`${here}.weight`));
    await source.close();
  });

  test("is refused where the two have no such model: weights of a hundredth, norms that differ, other tensors", async () => {
    const t5 = published.find(({ modelType }) => modelType === "t5") as Published;
    const gptJ = published.find(({ modelType }) => modelType === "gptj") as Published;
    const cases: readonly (readonly [SmallModel, RegExp])[] = [
      [{ ...t5, config: { ...t5.config, scale: true } }, /expected scale to be null, .*, got true/],
      [{ ...gptJ, copies: {} }, /expected encoder\.layers\.0\.ffn\.layernorm_before_ffn\.\w+ to equal/],
      [{ ...gptJ, tensors: { ...gptJ.tensors, "encoder.odd.weight": [2] } }, /got encoder\.odd\.weight/],
    ];
    for (const [model, message] of cases) {
      const { folder, path } = await written(model);
      expect(await refusal(() => convert(path, join(folder, "hf"), { to: "hf" }))).toHaveProperty(
        "message",
        expect.stringMatching(message),
      );
    }
  });
});
