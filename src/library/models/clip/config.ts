import * as field from "../config-fields.ts";
import { type ConfigOf, checkHeads, isConfigFile, readConfig } from "../config-fields.ts";

const towerFields = {
  num_hidden_layers: field.depth(12),
  hidden_act: field.activation("quick_gelu"),
  layer_norm_eps: field.positive(1e-5),
  attention_dropout: field.probability(0),
  initializer_range: field.positive(0.02),
  initializer_factor: field.positive(1),
} as const;

const textFields = {
  ...towerFields,
  vocab_size: field.size(49408),
  hidden_size: field.size(512),
  intermediate_size: field.size(2048),
  num_attention_heads: field.size(8),
  max_position_embeddings: field.size(77),
  /** The token that ends a text; the text's vector is read at its first occurrence. 2 means the largest id, as in the first releases. */
  eos_token_id: field.number(49407),
} as const;

const visionFields = {
  ...towerFields,
  hidden_size: field.size(768),
  intermediate_size: field.size(3072),
  num_attention_heads: field.size(12),
  num_channels: field.size(3),
  image_size: field.size(224),
  patch_size: field.size(32),
} as const;

const clipFields = {
  /** Width of the vectors in which pictures and texts are compared. */
  projection_dim: field.size(512),
  /** Natural logarithm of the first scale of the similarities. */
  logit_scale_init_value: field.number(2.6592),
  initializer_factor: field.positive(1),
} as const;

/** CLIP's text tower. */
export type ClipTextConfig = ConfigOf<typeof textFields>;

/** CLIP's picture tower. */
export type ClipVisionConfig = ConfigOf<typeof visionFields>;

/** Fields common to both towers. */
export type ClipTowerConfig = ConfigOf<typeof towerFields> &
  Pick<ClipTextConfig, "hidden_size" | "intermediate_size" | "num_attention_heads">;

/** A CLIP by the field names of Hugging Face's config.json. */
export type ClipConfig = ConfigOf<typeof clipFields> & {
  readonly text_config: ClipTextConfig;
  readonly vision_config: ClipVisionConfig;
};

type Given = Readonly<Record<string, unknown>>;

/** Completes given fields with CLIP ViT-B/32's and checks them. @throws {TroupeError} `MODEL_CONFIG` */
export function clipConfig(given: Given = {}): ClipConfig {
  const inFile = isConfigFile(given);
  const towers = ["text_config", "vision_config"];
  const own = readConfig({ where: "CLIPConfig", modelType: "clip", alsoRead: towers }, clipFields, given);
  const text_config = readConfig(
    { where: "CLIPTextConfig", modelType: "clip_text_model", inFile },
    textFields,
    (given.text_config ?? {}) as Given,
  );
  const vision_config = readConfig(
    { where: "CLIPVisionConfig", modelType: "clip_vision_model", inFile },
    visionFields,
    (given.vision_config ?? {}) as Given,
  );
  checkHeads("CLIPTextConfig", text_config);
  checkHeads("CLIPVisionConfig", vision_config);
  return { ...own, text_config, vision_config };
}
