import * as field from "../config-fields.ts";
import { type ConfigOf, checkField, readConfig } from "../config-fields.ts";
import type { NamedState } from "../weights.ts";

/** GPT-2 small, with the published dropout of 0.1. */
const gpt2Fields = {
  vocab_size: field.size(50257),
  /** Longest context. */
  n_positions: field.size(1024),
  /** Width D of the residual stream. */
  n_embd: field.size(768),
  n_layer: field.depth(12),
  n_head: field.size(12),
  /** Width of the feed-forward layer; null for 4 × n_embd. */
  n_inner: field.sizeOrNull(),
  activation_function: field.activation("gelu_new"),
  resid_pdrop: field.probability(0.1),
  embd_pdrop: field.probability(0.1),
  attn_pdrop: field.probability(0.1),
  layer_norm_epsilon: field.positive(1e-5),
  /** Standard deviation of the initial weights. */
  initializer_range: field.positive(0.02),
  /** Whether scores are divided by √(head width). */
  scale_attn_weights: field.flag(true),
  /** Whether layer i divides its scores by i + 1 as well. */
  scale_attn_by_inverse_layer_idx: field.flag(false),
  /** Whether the output layer is the token embedding. */
  tie_word_embeddings: field.flag(true),
} as const;

/**
 * A GPT-2, by the field names of Hugging Face's config.json, so that a model folder's file is the configuration.
 * A file may also have fields that change neither the model nor its training (library versions).
 */
export type GPT2Config = ConfigOf<typeof gpt2Fields> & {
  /** Tokens that begin and end a text, for generation; null: none. Default: GPT-2's own, if the vocabulary has it. */
  readonly bos_token_id?: number | null;
  readonly eos_token_id?: number | null;
};

/**
 * Completes given fields with the defaults and checks them.
 * @param fields - any of {@link GPT2Config}'s, or the parsed config.json of a model folder
 * @throws `MODEL_CONFIG` naming the field, what it must be and what it is
 */
export function gpt2Config(fields: Partial<GPT2Config> = {}): GPT2Config {
  const where = "GPT2Config";
  const given: Readonly<Record<string, unknown>> = { ...fields };
  const rules = {
    where,
    modelType: "gpt2",
    unsupported: ["add_cross_attention"],
    alsoRead: ["reorder_and_upcast_attn"], // asks for scores in float32, as they always are
  };
  const config = readConfig(rules, gpt2Fields, given);
  const { n_embd: width, n_head: heads } = config;
  checkField(where, "n_embd", width % heads === 0, `a multiple of n_head = ${heads}`, width);
  return config;
}

const END_OF_TEXT = 50256;

/** The config.json of a folder that `transformers` reads as this model. */
export function gpt2ConfigJson(config: GPT2Config, suffix: string): NamedState["configJson"] {
  // Without this field, readers assume GPT-2's own end-of-text token.
  const endOfText = config.vocab_size > END_OF_TEXT ? END_OF_TEXT : null;
  const tokens = { bos_token_id: endOfText, eos_token_id: endOfText };
  return { architectures: [`GPT2${suffix}`], model_type: "gpt2", ...tokens, ...config };
}
