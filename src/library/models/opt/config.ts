import * as field from "../config-fields.ts";
import { type ConfigOf, checkHeads, readConfig } from "../config-fields.ts";

/** Sizes: D hidden, H heads, I inner, E embedding. Defaults are those of the 125M model. */
const optFields = {
  vocab_size: field.size(50272),
  hidden_size: field.size(768),
  num_hidden_layers: field.depth(12),
  num_attention_heads: field.size(12),
  /** I. */
  ffn_dim: field.size(3072),
  max_position_embeddings: field.size(2048),
  /** E; null for D. */
  word_embed_proj_dim: field.sizeOrNull(),
  activation_function: field.activation("relu"),
  dropout: field.probability(0.1),
  attention_dropout: field.probability(0),
  /** Probability that training skips a layer. */
  layerdrop: field.probability(0),
  init_std: field.positive(0.02),
  /** Whether norms come before the halves of a layer; else after their sums. */
  do_layer_norm_before: field.flag(true),
  /** Whether the last norm is left out, as in files from before July 2022. */
  _remove_final_layer_norm: field.flag(false),
  /** Whether the maps of a layer have biases. */
  enable_bias: field.flag(true),
  /** Whether norms have weights and biases. */
  layer_norm_elementwise_affine: field.flag(true),
  /** Whether the output layer is the token embedding. */
  tie_word_embeddings: field.flag(true),
  /** The row of the embedding that lookups do not train. */
  pad_token_id: field.tokenId(1),
} as const;

/** An OPT, by the field names of Hugging Face's config.json. */
export type OPTConfig = ConfigOf<typeof optFields> & { readonly word_embed_proj_dim: number };

/** Completes given fields with those of the 125M model and checks them. @throws {TroupeError} `MODEL_CONFIG` */
export function optConfig(given: Readonly<Record<string, unknown>> = {}): OPTConfig {
  const where = "OPTConfig";
  const read = readConfig({ where, modelType: "opt" }, optFields, given);
  checkHeads(where, read);
  return { ...read, word_embed_proj_dim: read.word_embed_proj_dim ?? read.hidden_size };
}

/** Whether there is a norm after all layers. */
export function hasLastNorm({ do_layer_norm_before, _remove_final_layer_norm }: OPTConfig): boolean {
  return do_layer_norm_before && !_remove_final_layer_norm;
}
