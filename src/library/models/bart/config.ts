import * as field from "../config-fields.ts";
import { type ConfigOf, checkField, configJsonOf, readConfig } from "../config-fields.ts";
import type { NamedState, StateNaming } from "../weights.ts";

const bartFields = {
  vocab_size: field.size(50265),
  /** Longest row; the table of positions has two more rows at its start. */
  max_position_embeddings: field.size(1024),
  d_model: field.size(1024),
  encoder_layers: field.depth(12),
  encoder_ffn_dim: field.size(4096),
  encoder_attention_heads: field.size(16),
  decoder_layers: field.depth(12),
  decoder_ffn_dim: field.size(4096),
  decoder_attention_heads: field.size(16),
  activation_function: field.activation("gelu"),
  dropout: field.probability(0.1),
  attention_dropout: field.probability(0),
  activation_dropout: field.probability(0),
  /** Probability that training skips a layer. */
  encoder_layerdrop: field.probability(0),
  decoder_layerdrop: field.probability(0),
  init_std: field.positive(0.02),
  /** Whether words are multiplied by √d_model. */
  scale_embedding: field.flag(false),
  pad_token_id: field.tokenId(1),
  decoder_start_token_id: field.tokenId(2),
  /** Whether both stacks and the output layer share one embedding; else each has its own. */
  tie_word_embeddings: field.flag(true),
} as const;

/** Blenderbot 3B's defaults where they differ, as in transformers. */
// biome-ignore format: a list
const blenderbotDefaults = {
  vocab_size: 8008, max_position_embeddings: 128, d_model: 2560, encoder_layers: 2, encoder_ffn_dim: 10240,
  encoder_attention_heads: 32, decoder_layers: 24, decoder_ffn_dim: 10240, decoder_attention_heads: 32,
  pad_token_id: 0, decoder_start_token_id: 1,
};

const families = {
  bart: { where: "BartConfig", defaults: {} },
  blenderbot: { where: "BlenderbotConfig", defaults: blenderbotDefaults },
} as const;

/** The families of this folder, by the `model_type` of their config.json. */
export type BartType = keyof typeof families;

/** A BART, or a Blenderbot, by the field names of Hugging Face's config.json. */
export type BartConfig = ConfigOf<typeof bartFields> & { readonly model_type: BartType };

/**
 * Completes given fields with those of BART large, or of Blenderbot's 3B, and checks them.
 * @throws {TroupeError} `MODEL_CONFIG`
 */
export function bartConfig(given: Readonly<Record<string, unknown>> = {}): BartConfig {
  const type = (given.model_type ?? "bart") as BartType;
  const names = Object.keys(families);
  checkField("BartConfig", "model_type", names.includes(type), `one of ${names.join(", ")}`, type);
  const { where, defaults } = families[type];
  const read = readConfig({ where, modelType: type }, bartFields, { ...defaults, ...given });
  const config = { ...read, model_type: type };
  const { d_model: width } = config;
  for (const field of ["encoder_attention_heads", "decoder_attention_heads"] as const)
    checkField(where, field, width % config[field] === 0, `a divisor of d_model = ${width}`, config[field]);
  for (const field of ["pad_token_id", "decoder_start_token_id"] as const)
    checkField(where, field, config[field] !== null, "a token's id", config[field]);
  return config;
}

/** Names of BART's parameters in files. Old files have the shared embedding once per stack. */
export function bartNaming({ tie_word_embeddings: tied }: BartConfig): StateNaming {
  const copies = /^(encoder|decoder)\.embed_tokens\.weight$/;
  return { prefix: "model.", ignored: tied ? [copies, /^lm_head\.weight$/] : [] };
}

/** The config.json for such a file. */
export function bartConfigJson(config: BartConfig): NamedState["configJson"] {
  const architecture = { bart: "Bart", blenderbot: "Blenderbot" }[config.model_type];
  return {
    ...configJsonOf(config, config.model_type, `${architecture}ForConditionalGeneration`),
    is_encoder_decoder: true,
  };
}
