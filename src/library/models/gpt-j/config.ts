import * as field from "../config-fields.ts";
import { type ConfigOf, checkField, readConfig } from "../config-fields.ts";

/** Sizes: D n_embd, H heads, K = D / H, R rotated features of each, I inner. Defaults are the 6B model's. */
const gptJFields = {
  vocab_size: field.size(50400),
  /** Longest context. */
  n_positions: field.size(2048),
  n_embd: field.size(4096),
  n_layer: field.depth(28),
  n_head: field.size(16),
  /** R. */
  rotary_dim: field.size(64),
  /** I; null for 4 × n_embd. */
  n_inner: field.sizeOrNull(),
  activation_function: field.activation("gelu_new"),
  resid_pdrop: field.probability(0),
  embd_pdrop: field.probability(0),
  attn_pdrop: field.probability(0),
  layer_norm_epsilon: field.positive(1e-5),
  initializer_range: field.positive(0.02),
  /** Whether the output layer is the token embedding, with a bias of its own. */
  tie_word_embeddings: field.flag(false),
} as const;

/** A GPT-J, by the field names of Hugging Face's config.json. */
export type GPTJConfig = ConfigOf<typeof gptJFields>;

/** Completes given fields with those of the 6B model and checks them. @throws {TroupeError} `MODEL_CONFIG` */
export function gptJConfig(given: Readonly<Record<string, unknown>> = {}): GPTJConfig {
  const where = "GPTJConfig";
  const config = readConfig({ where, modelType: "gptj" }, gptJFields, given);
  const { n_embd: width, n_head: heads, rotary_dim: turned } = config;
  checkField(where, "n_embd", width % heads === 0, `a multiple of n_head = ${heads}`, width);
  const fits = turned % 2 === 0 && turned <= width / heads;
  checkField(where, "rotary_dim", fits, `even, at most the ${width / heads} features of a head`, turned);
  return config;
}
