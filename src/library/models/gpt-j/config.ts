import {
  activation,
  type ConfigOf,
  checkField,
  depth,
  flag,
  positive,
  probability,
  readConfig,
  size,
  sizeOrNull,
} from "../config-fields.ts";

/** Sizes: D n_embd, H heads, K = D / H, R rotated features of each, I inner. Defaults are the 6B model's. */
const gptJFields = {
  vocab_size: size(50400),
  /** Longest context. */
  n_positions: size(2048),
  n_embd: size(4096),
  n_layer: depth(28),
  n_head: size(16),
  /** R. */
  rotary_dim: size(64),
  /** I; null for 4 × n_embd. */
  n_inner: sizeOrNull(),
  activation_function: activation("gelu_new"),
  resid_pdrop: probability(0),
  embd_pdrop: probability(0),
  attn_pdrop: probability(0),
  layer_norm_epsilon: positive(1e-5),
  initializer_range: positive(0.02),
  /** Whether the output layer is the token embedding, with a bias of its own. */
  tie_word_embeddings: flag(false),
} as const;

/** A GPT-J, by the field names of Hugging Face's config.json. */
export type GPTJConfig = ConfigOf<typeof gptJFields>;

/**
 * Completes given fields with those of the 6B model and checks them.
 * @throws {TroupeError} `MODEL_CONFIG`
 */
export function gptJConfig(given: Readonly<Record<string, unknown>> = {}): GPTJConfig {
  const where = "GPTJConfig";
  const config = readConfig({ where, modelType: "gptj" }, gptJFields, given);
  const { n_embd: width, n_head: heads, rotary_dim: turned } = config;
  checkField(where, "n_embd", width % heads === 0, `a multiple of n_head = ${heads}`, width);
  const fits = turned % 2 === 0 && turned <= width / heads;
  checkField(where, "rotary_dim", fits, `even, at most the ${width / heads} features of a head`, turned);
  return config;
}
