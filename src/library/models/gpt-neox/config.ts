import * as field from "../config-fields.ts";
import { type ConfigOf, checkHeads, configJsonOf, readConfig } from "../config-fields.ts";
import { type RopeParameters, ropeNames, ropeOf } from "../rope-parameters.ts";
import type { ConfigField, NamedState } from "../weights.ts";

/** Sizes: D hidden, H heads, K = D / H, I inner. Defaults are the 20B model's. */
const neoxFields = {
  vocab_size: field.size(50432),
  hidden_size: field.size(6144),
  num_hidden_layers: field.depth(44),
  num_attention_heads: field.size(64),
  intermediate_size: field.size(24576),
  hidden_act: field.activation("gelu"),
  max_position_embeddings: field.size(2048),
  attention_dropout: field.probability(0),
  hidden_dropout: field.probability(0),
  initializer_range: field.positive(0.02),
  layer_norm_eps: field.positive(1e-5),
  /** Whether both halves of a layer read the same stream and are added together; else one after the other. */
  use_parallel_residual: field.flag(true),
  /** Whether the projections of attention have biases. */
  attention_bias: field.flag(true),
  /** Whether the output layer is the token embedding itself. */
  tie_word_embeddings: field.flag(false),
  pad_token_id: field.tokenId(null),
} as const;

/** A GPT-NeoX, by the field names of Hugging Face's config.json. */
export type GPTNeoXConfig = ConfigOf<typeof neoxFields> & { readonly rope_parameters: RopeParameters };

/** Names in transformers 4 of the rotated part of a head, and of the base of angles. */
const oldNames = ["rotary_pct", "rotary_emb_base"];

/**
 * Completes given fields with those of the 20B model, which rotates a quarter of each head, and checks them.
 * @throws {TroupeError} `MODEL_CONFIG`
 */
export function gptNeoXConfig(given: Readonly<Record<string, unknown>> = {}): GPTNeoXConfig {
  const where = "GPTNeoXConfig";
  const read = readConfig(
    { where, modelType: "gpt_neox", alsoRead: [...ropeNames, ...oldNames] },
    neoxFields,
    given,
  );
  const { hidden_size: width, num_attention_heads: heads, max_position_embeddings: maxPositions } = read;
  checkHeads(where, read);
  const { rotary_pct: partial_rotary_factor, rotary_emb_base: rope_theta } = given;
  const renamed = { partial_rotary_factor, rope_theta, ...given };
  const rope_parameters = ropeOf(where, renamed, { maxPositions, headWidth: width / heads, partial: 0.25 });
  return { ...read, rope_parameters };
}

/** Number of rotated features in a head. */
export function rotaryWidth({ hidden_size, num_attention_heads, rope_parameters }: GPTNeoXConfig): number {
  return Math.floor((hidden_size / num_attention_heads) * (rope_parameters.partial_rotary_factor ?? 1));
}

/** The config.json for a file of the model, in the fields of transformers 4 and 5. */
export function gptNeoXConfigJson(config: GPTNeoXConfig, suffix: string): NamedState["configJson"] {
  const { rope_theta, partial_rotary_factor = 1, ...scaling } = config.rope_parameters;
  const fields = {
    ...config,
    rope_parameters: { ...config.rope_parameters } as { readonly [name: string]: ConfigField },
    rotary_pct: partial_rotary_factor,
    rotary_emb_base: rope_theta,
    rope_scaling:
      scaling.rope_type === "default" ? null : ({ ...scaling } as { readonly [name: string]: ConfigField }),
  };
  return configJsonOf(fields, "gpt_neox", `GPTNeoX${suffix}`);
}
