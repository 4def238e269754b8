import * as field from "../config-fields.ts";
import { type ConfigOf, checkField, checkHeads, readConfig } from "../config-fields.ts";
import type { StateNaming } from "../weights.ts";

const vitFields = {
  hidden_size: field.size(768),
  num_hidden_layers: field.depth(12),
  num_attention_heads: field.size(12),
  intermediate_size: field.size(3072),
  hidden_act: field.activation("gelu"),
  hidden_dropout_prob: field.probability(0),
  attention_probs_dropout_prob: field.probability(0),
  initializer_range: field.positive(0.02),
  layer_norm_eps: field.positive(1e-12),
  /** Pixels, or height and width if they differ. */
  image_size: field.sizeOrPair(224),
  patch_size: field.sizeOrPair(16),
  num_channels: field.size(3),
  qkv_bias: field.flag(true),
  id2label: field.labelNames(),
  problem_type: field.problemType(),
} as const;

/** A ViT by the field names of Hugging Face's config.json. */
export type ViTConfig = ConfigOf<typeof vitFields>;

/** Completes given fields with ViT base's and checks them. @throws {TroupeError} `MODEL_CONFIG` */
export function vitConfig(given: Readonly<Record<string, unknown>> = {}): ViTConfig {
  const where = "ViTConfig";
  const config = readConfig({ where, modelType: "vit" }, vitFields, given);
  checkHeads(where, config);
  const [image, patch] = [both(config.image_size), both(config.patch_size)];
  const fits = image.every((pixels, dim) => pixels >= (patch[dim] ?? 0));
  checkField(where, "patch_size", fits, `at most image_size = ${image.join(" × ")}`, config.patch_size);
  return config;
}

/** Height and width. */
export function both(value: number | readonly [number, number]): readonly [number, number] {
  return typeof value === "number" ? [value, value] : value;
}

/** Names of ViT's parameters in files: as published; some files use those of transformers 5. */
export const vitNaming: StateNaming = {
  prefix: "vit.",
  ignored: [/^embeddings\.mask_token$/],
  renamed: [
    [/^layers\.(\d+)\.attention\.q_proj\./, "encoder.layer.$1.attention.attention.query."],
    [/^layers\.(\d+)\.attention\.k_proj\./, "encoder.layer.$1.attention.attention.key."],
    [/^layers\.(\d+)\.attention\.v_proj\./, "encoder.layer.$1.attention.attention.value."],
    [/^layers\.(\d+)\.attention\.o_proj\./, "encoder.layer.$1.attention.output.dense."],
    [/^layers\.(\d+)\.mlp\.fc1\./, "encoder.layer.$1.intermediate.dense."],
    [/^layers\.(\d+)\.mlp\.fc2\./, "encoder.layer.$1.output.dense."],
    [/^layers\.(\d+)\./, "encoder.layer.$1."],
  ],
  modules: [
    [/\bencoder\.layer\.(\d+)\.attention\.attention\.query\b/, "layers.$1.attention.q_proj"],
    [/\bencoder\.layer\.(\d+)\.attention\.attention\.key\b/, "layers.$1.attention.k_proj"],
    [/\bencoder\.layer\.(\d+)\.attention\.attention\.value\b/, "layers.$1.attention.v_proj"],
    [/\bencoder\.layer\.(\d+)\.attention\.output\.dense\b/, "layers.$1.attention.o_proj"],
    [/\bencoder\.layer\.(\d+)\.intermediate\.dense\b/, "layers.$1.mlp.fc1"],
    [/\bencoder\.layer\.(\d+)\.output\.dense\b/, "layers.$1.mlp.fc2"],
    [/\bencoder\.layer\.(\d+)\b/, "layers.$1"],
  ],
  head: { outsidePrefix: true, names: [/^pooler\./] },
};
