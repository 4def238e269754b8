import { checkHeads } from "../bert/config.ts";
import {
  activation,
  type ConfigOf,
  checkField,
  depth,
  flag,
  labelNames,
  oneOf,
  positive,
  probability,
  readConfig,
  size,
  sizeOrPair,
} from "../config-fields.ts";
import type { ProblemType } from "../heads/index.ts";

const vitFields = {
  hidden_size: size(768),
  num_hidden_layers: depth(12),
  num_attention_heads: size(12),
  intermediate_size: size(3072),
  hidden_act: activation("gelu"),
  hidden_dropout_prob: probability(0),
  attention_probs_dropout_prob: probability(0),
  initializer_range: positive(0.02),
  layer_norm_eps: positive(1e-12),
  /** Pixels, or height and width if they differ. */
  image_size: sizeOrPair(224),
  patch_size: sizeOrPair(16),
  num_channels: size(3),
  qkv_bias: flag(true),
  id2label: labelNames(),
  problem_type: oneOf<ProblemType>(null, [
    null,
    "regression",
    "single_label_classification",
    "multi_label_classification",
  ]),
} as const;

/** A ViT by the field names of Hugging Face's config.json. */
export type ViTConfig = ConfigOf<typeof vitFields>;

/**
 * Completes given fields with ViT base's and checks them.
 * @throws {TroupeError} `MODEL_CONFIG`
 */
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
