import {
  activation,
  type ConfigOf,
  checkField,
  flag,
  positive,
  probability,
  readConfig,
  size,
  tokenId,
} from "../config-fields.ts";

const bartFields = {
  vocab_size: size(50265),
  /** Longest row; two more rows of positions stand before the first. */
  max_position_embeddings: size(1024),
  d_model: size(1024),
  encoder_layers: size(12),
  encoder_ffn_dim: size(4096),
  encoder_attention_heads: size(16),
  decoder_layers: size(12),
  decoder_ffn_dim: size(4096),
  decoder_attention_heads: size(16),
  activation_function: activation("gelu"),
  dropout: probability(0.1),
  attention_dropout: probability(0),
  activation_dropout: probability(0),
  /** With what probability a layer is left out while training. */
  encoder_layerdrop: probability(0),
  decoder_layerdrop: probability(0),
  init_std: positive(0.02),
  /** Whether words are multiplied by √d_model. */
  scale_embedding: flag(false),
  pad_token_id: tokenId(1),
  decoder_start_token_id: tokenId(2),
  /** Whether both stacks read the shared words and the output layer is these; else each has words of its own. */
  tie_word_embeddings: flag(true),
} as const;

/** A BART by the field names of Hugging Face's config.json. */
export type BartConfig = ConfigOf<typeof bartFields>;

/**
 * Completes given fields with BART large's and checks them.
 * @throws {TroupeError} `MODEL_CONFIG`
 */
export function bartConfig(given: Readonly<Record<string, unknown>> = {}): BartConfig {
  const where = "BartConfig";
  const config = readConfig({ where, modelType: "bart" }, bartFields, given);
  const { d_model: width } = config;
  for (const field of ["encoder_attention_heads", "decoder_attention_heads"] as const) {
    checkField(where, field, width % config[field] === 0, `a divisor of d_model = ${width}`, config[field]);
  }
  for (const field of ["pad_token_id", "decoder_start_token_id"] as const) {
    checkField(where, field, config[field] !== null, "a token's id", config[field]);
  }
  return config;
}
