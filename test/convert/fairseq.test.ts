import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { dematerialize, materialize } from "../../src/compute/nn/index.ts";
import {
  HuggingFaceFolder,
  type JsonObject,
  type TensorSource,
  writeSafetensors,
} from "../../src/library/checkpoint/index.ts";
import { convert } from "../../src/library/convert/index.ts";
import { autoModel, loadWeights, type Task, taskOf } from "../../src/library/models/index.ts";
import { refusal } from "../checkpoint/refusal.ts";
import { temporaryFolder } from "../service/temporary-folder.ts";
import { contentAt } from "./content-at.ts";
import { numbered } from "./models.ts";

type Shapes = Readonly<Record<string, readonly number[]>>;

const [width, inner, words, places] = [8, 12, 11, 7];

const both = (name: string, out: number, numInputs?: number): Shapes => ({
  [`${name}.weight`]: numInputs === undefined ? [out] : [out, numInputs],
  [`${name}.bias`]: [out],
});
const merged = (...all: readonly Shapes[]): Shapes => Object.assign({}, ...all);
const maps = ["q_proj", "k_proj", "v_proj", "out_proj"];
const attention = (name: string) =>
  merged(...maps.map((map) => both(`${name}.${map}`, width, width)), both(`${name}_layer_norm`, width));
const layer = (name: string, ...more: readonly Shapes[]) =>
  merged(
    attention(`${name}.self_attn`),
    both(`${name}.fc1`, inner, width),
    both(`${name}.fc2`, width, inner),
    both(`${name}.final_layer_norm`, width),
    ...more,
  );
const layers = (name: string, more: (layer: string) => Shapes = () => ({})) =>
  merged(...[0, 1].map((place) => layer(`${name}.layers.${place}`, more(`${name}.layers.${place}`))));

// Names are those of `torch.load(…)["model"]` of FairSeq's published models.
const stack = "encoder.sentence_encoder";
const text: Shapes = merged(
  { [`${stack}.embed_tokens.weight`]: [words, width], [`${stack}.embed_positions.weight`]: [places, width] },
  both(`${stack}.layernorm_embedding`, width),
  layers(stack),
);
const encoder = {
  vocab_size: words,
  hidden_size: width,
  intermediate_size: inner,
  num_hidden_layers: 2,
  num_attention_heads: 2,
  max_position_embeddings: places,
  type_vocab_size: 1,
};
const wav2vec2 = (isLayer: boolean): Shapes =>
  merged(
    ...[0, 1].map((place): Shapes => {
      const conv = `feature_extractor.conv_layers.${place}`;
      const norm = isLayer ? both(`${conv}.2.1`, 5) : place === 0 ? both(`${conv}.2`, 5) : {};
      return merged({ [`${conv}.0.weight`]: [5, place === 0 ? 1 : 5, 3] }, norm);
    }),
    both("layer_norm", 5),
    both("post_extract_proj", width, 5),
    { mask_emb: [width] },
    layers("encoder"),
    both("encoder.layer_norm", width),
  );
const below = (prefix: string, shapes: Shapes): Shapes =>
  Object.fromEntries(Object.entries(shapes).map(([name, shape]) => [prefix + name, shape]));
const speech = {
  vocab_size: words,
  hidden_size: width,
  intermediate_size: inner,
  num_hidden_layers: 2,
  num_attention_heads: 2,
  conv_dim: [5, 5],
  conv_kernel: [3, 3],
  conv_stride: [2, 2],
  num_conv_pos_embedding_groups: 2,
};

interface Published {
  readonly title: string;
  readonly config: JsonObject;
  readonly tensors: Shapes;
}

const published: readonly Published[] = [
  {
    title: "RoBERTa",
    config: { model_type: "roberta", architectures: ["RobertaForMaskedLM"], ...encoder },
    tensors: merged(
      text,
      both("encoder.lm_head.dense", width, width),
      both("encoder.lm_head.layer_norm", width),
      { "encoder.lm_head.weight": [words, width], "encoder.lm_head.bias": [words] },
    ),
  },
  {
    title: "data2vec's model of text, tuned to classify",
    config: {
      model_type: "data2vec-text",
      architectures: ["Data2VecTextForSequenceClassification"],
      ...encoder,
      num_labels: 3,
    },
    tensors: merged(
      text,
      both("classification_heads.sentence_classification_head.dense", width, width),
      both("classification_heads.sentence_classification_head.out_proj", 3, width),
    ),
  },
  {
    title: "BART",
    config: {
      model_type: "bart",
      architectures: ["BartForConditionalGeneration"],
      vocab_size: words,
      d_model: width,
      max_position_embeddings: places,
      encoder_layers: 2,
      decoder_layers: 2,
      encoder_ffn_dim: inner,
      decoder_ffn_dim: inner,
      encoder_attention_heads: 2,
      decoder_attention_heads: 2,
    },
    tensors: merged(
      ...["encoder", "decoder"].map((name) =>
        merged(
          {
            [`${name}.embed_tokens.weight`]: [words, width],
            [`${name}.embed_positions.weight`]: [places + 2, width],
          },
          both(`${name}.layernorm_embedding`, width),
          layers(name, (each) => (name === "decoder" ? attention(`${each}.encoder_attn`) : {})),
        ),
      ),
      { "decoder.output_projection.weight": [words, width] },
    ),
  },
  {
    title: "OPT, its words narrower than its layers",
    config: {
      model_type: "opt",
      architectures: ["OPTForCausalLM"],
      vocab_size: words,
      hidden_size: width,
      ffn_dim: inner,
      num_hidden_layers: 2,
      num_attention_heads: 2,
      max_position_embeddings: places,
      word_embed_proj_dim: 4,
    },
    tensors: merged(
      {
        "decoder.embed_tokens.weight": [words, 4],
        "decoder.embed_positions.weight": [places + 2, width],
        "decoder.project_in_dim.weight": [width, 4],
        "decoder.project_out_dim.weight": [4, width],
        "decoder.output_projection.weight": [words, 4],
      },
      layers("decoder"),
      both("decoder.layer_norm", width),
    ),
  },
  ...[false, true].map((isLayer) => ({
    title: `wav2vec 2 normed by ${isLayer ? "layer" : "group"}, tuned to write`,
    config: {
      model_type: "wav2vec2",
      architectures: ["Wav2Vec2ForCTC"],
      ...speech,
      feat_extract_norm: isLayer ? "layer" : "group",
      num_conv_pos_embeddings: 4,
    } as JsonObject,
    tensors: merged(
      below(
        "w2v_encoder.w2v_model.",
        merged(wav2vec2(isLayer), {
          "encoder.pos_conv.0.weight_g": [1, 1, 4],
          "encoder.pos_conv.0.weight_v": [width, width / 2, 4],
          "encoder.pos_conv.0.bias": [width],
        }),
      ),
      both("w2v_encoder.proj", words, width),
    ),
  })),
  {
    title: "wav2vec 2 as it is pre-trained, codes and all",
    config: {
      model_type: "wav2vec2",
      architectures: ["Wav2Vec2ForPreTraining"],
      ...speech,
      feat_extract_norm: "layer",
      num_conv_pos_embeddings: 4,
      num_codevectors_per_group: 3,
      codevector_dim: 6,
      proj_codevector_dim: 4,
    },
    tensors: below(
      "w2v_encoder.w2v_model.",
      merged(
        wav2vec2(true),
        {
          "encoder.pos_conv.0.weight_g": [1, 1, 4],
          "encoder.pos_conv.0.weight_v": [width, width / 2, 4],
          "encoder.pos_conv.0.bias": [width],
          "quantizer.vars": [1, 6, 3],
        },
        both("quantizer.weight_proj", 6, 5),
        both("project_q", 4, 6),
        both("final_proj", 4, width),
      ),
    ),
  },
  {
    title: "data2vec's model of speech, tuned to write",
    config: {
      model_type: "data2vec-audio",
      architectures: ["Data2VecAudioForCTC"],
      ...speech,
      conv_pos_kernel_size: 3,
      num_conv_pos_embeddings: 2,
    },
    tensors: merged(
      below(
        "w2v_encoder.w2v_model.",
        merged(
          wav2vec2(true),
          ...[0, 1].map(
            (place): Shapes => ({
              [`encoder.pos_conv.${place}.0.weight`]: [width, width / 2, 3],
              [`encoder.pos_conv.${place}.0.bias`]: [width],
            }),
          ),
        ),
      ),
      both("w2v_encoder.proj", words, width),
    ),
  },
];

/** Copies of the words hold the words' own numbers. */
function tensorsOf(shapes: Shapes): TensorSource[] {
  const all = numbered({ config: {}, tensors: shapes });
  const isWords = (name: string) =>
    /embed_tokens\.weight$|lm_head\.weight$|output_projection\.weight$/.test(name);
  const first = all.find(({ name }) => isWords(name)) as TensorSource;
  return all.map((tensor) => (isWords(tensor.name) ? { ...tensor, read: first.read } : tensor));
}

describe("FairSeq's names", () => {
  test.each(published)(
    "of $title become Hugging Face's, which the model reads, and theirs again, bit by bit",
    async ({ config, tensors }) => {
      const folder = await temporaryFolder();
      const file = join(folder, "model.safetensors");
      await writeSafetensors(file, tensorsOf(tensors));
      const converted = await convert(file, join(folder, "hf"), { to: "hf", config });
      expect(converted.from).toBe("fairseq");
      const model = autoModel(taskOf(config) as Task, config);
      materialize(model, { seed: 0 });
      await using hf = await HuggingFaceFolder.open(join(folder, "hf"));
      await loadWeights(model, hf);
      dematerialize(model);
      await convert(join(folder, "hf"), join(folder, "again.safetensors"), { to: "fairseq" });
      expect(await contentAt(join(folder, "again.safetensors"))).toEqual(await contentAt(file));
    },
  );

  test("of old releases, with queries, keys and values in one matrix, become the same", async () => {
    const [{ config, tensors }] = published as [Published];
    const folder = await temporaryFolder();
    const now = tensorsOf(tensors);
    const bytesOf = (name: string) => now.find((tensor) => tensor.name === name)?.read() as Uint8Array;
    const old = now
      .filter(({ name }) => !/\.(k|v)_proj\./.test(name))
      .map((tensor): TensorSource => {
        const fused = /^(.*self_attn)\.q_proj\.(weight|bias)$/.exec(tensor.name);
        const renamed = tensor.name
          .replace("layernorm_embedding", "emb_layer_norm")
          .replace("encoder.", "decoder.");
        if (fused === null) return { ...tensor, name: renamed };
        const [, attention_, kind] = fused;
        const parts = ["q", "k", "v"].map((map) => bytesOf(`${attention_}.${map}_proj.${kind}`));
        return {
          ...tensor,
          name: `${attention_}.in_proj_${kind}`.replace("encoder.", "decoder."),
          shape: [3 * width, ...tensor.shape.slice(1)],
          read: () => new Uint8Array(Buffer.concat(parts)),
        };
      });
    await writeSafetensors(join(folder, "now.safetensors"), now);
    await writeSafetensors(join(folder, "old.safetensors"), old);
    for (const name of ["now", "old"])
      await convert(join(folder, `${name}.safetensors`), join(folder, name), { to: "hf", config });
    expect(await contentAt(join(folder, "old"))).toEqual(await contentAt(join(folder, "now")));
  });

  test("of metaseq's OPT, with keys, values and queries in one matrix and no output layer, become the same", async () => {
    const { config, tensors } = published.find((each) => each.config.model_type === "opt") as Published;
    const folder = await temporaryFolder();
    const now = tensorsOf(tensors);
    const bytesOf = (name: string) => now.find((tensor) => tensor.name === name)?.read() as Uint8Array;
    const fused = now
      .filter(({ name }) => !/\.(k|v)_proj\.|output_projection/.test(name))
      .map((tensor): TensorSource => {
        const [, attention_, kind] = /^(.*self_attn)\.q_proj\.(weight|bias)$/.exec(tensor.name) ?? [];
        if (attention_ === undefined) return tensor;
        const parts = ["k", "v", "q"].map((map) => bytesOf(`${attention_}.${map}_proj.${kind}`));
        return {
          ...tensor,
          name: `${attention_}.qkv_proj.${kind}`,
          shape: [3 * width, ...tensor.shape.slice(1)],
          read: () => new Uint8Array(Buffer.concat(parts)),
        };
      });
    await writeSafetensors(join(folder, "now.safetensors"), now);
    await writeSafetensors(join(folder, "fused.safetensors"), fused);
    for (const name of ["now", "fused"])
      await convert(join(folder, `${name}.safetensors`), join(folder, name), { to: "hf", config });
    expect(await contentAt(join(folder, "fused"))).toEqual(await contentAt(join(folder, "now")));
  });

  test("are refused where the model has none such, and what FairSeq has no place for", async () => {
    const [{ config, tensors }] = published as [Published];
    const folder = await temporaryFolder();
    const file = join(folder, "odd.safetensors");
    await writeSafetensors(file, tensorsOf({ ...tensors, "encoder.adapter.weight": [2, 2] }));
    expect(await refusal(() => convert(file, join(folder, "out"), { to: "hf", config }))).toHaveProperty(
      "message",
      expect.stringMatching(
        /expected names that FairSeq's model and Hugging Face's share, got encoder\.adapter\.weight/,
      ),
    );
    await writeSafetensors(
      join(folder, "model.safetensors"),
      numbered({ config, tensors: { "roberta.embeddings.token_type_embeddings.weight": [1, width] } }),
    );
    await writeFile(join(folder, "config.json"), JSON.stringify(config));
    expect(await refusal(() => convert(folder, join(folder, "out"), { to: "fairseq" }))).toHaveProperty(
      "message",
      expect.stringMatching(/token_type_embeddings\.weight, which is not zero/),
    );
  });
});
