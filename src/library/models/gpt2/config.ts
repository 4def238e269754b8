import { type ActivationName, activations } from "../../../compute/nn/index.ts";
import { TroupeError } from "../../../errors/index.ts";
import { depth, isConfigFile, refuseUnknownFields } from "../config-fields.ts";

/**
 * A GPT-2, by the field names of Hugging Face's config.json, so that a model folder's file is the configuration.
 * A file may also have fields that change neither the model nor its training (library versions).
 */
export interface GPT2Config {
  readonly vocab_size: number;
  /** Longest context. */
  readonly n_positions: number;
  /** Width D of the residual stream. */
  readonly n_embd: number;
  readonly n_layer: number;
  readonly n_head: number;
  /** Width of the feed-forward layer; null for 4 × n_embd. */
  readonly n_inner: number | null;
  readonly activation_function: ActivationName;
  readonly resid_pdrop: number;
  readonly embd_pdrop: number;
  readonly attn_pdrop: number;
  readonly layer_norm_epsilon: number;
  /** Standard deviation of the initial weights. */
  readonly initializer_range: number;
  /** Whether scores are divided by √(head width). */
  readonly scale_attn_weights: boolean;
  /** Whether layer i divides its scores by i + 1 as well. */
  readonly scale_attn_by_inverse_layer_idx: boolean;
  /** Whether the output layer is the token embedding. */
  readonly tie_word_embeddings: boolean;
  /** Tokens that begin and end a text, for generation; null: none. Default: GPT-2's own, if the vocabulary has it. */
  readonly bos_token_id?: number | null;
  readonly eos_token_id?: number | null;
}

/** GPT-2 small, with the published dropout of 0.1. */
const gpt2Defaults: GPT2Config = {
  vocab_size: 50257,
  n_positions: 1024,
  n_embd: 768,
  n_layer: 12,
  n_head: 12,
  n_inner: null,
  activation_function: "gelu_new",
  resid_pdrop: 0.1,
  embd_pdrop: 0.1,
  attn_pdrop: 0.1,
  layer_norm_epsilon: 1e-5,
  initializer_range: 0.02,
  scale_attn_weights: true,
  scale_attn_by_inverse_layer_idx: false,
  tie_word_embeddings: true,
};

const sizes = ["vocab_size", "n_positions", "n_embd", "n_layer", "n_head"] as const;
const probabilities = ["resid_pdrop", "embd_pdrop", "attn_pdrop"] as const;
const positives = ["layer_norm_epsilon", "initializer_range"] as const;
const flags = ["scale_attn_weights", "scale_attn_by_inverse_layer_idx", "tie_word_embeddings"] as const;

/** Switches of computations that this GPT-2 lacks. */
const unsupported = ["add_cross_attention"] as const;

/** Accepted without effect: it asks for scores in float32, as they always are. */
const asItIs = ["reorder_and_upcast_attn"] as const;

/**
 * Completes given fields with the defaults and checks them.
 * @param fields - any of {@link GPT2Config}'s, or the parsed config.json of a model folder
 * @throws `MODEL_CONFIG` naming the field, what it must be and what it is
 */
export function gpt2Config(fields: Partial<GPT2Config> = {}): GPT2Config {
  const given: Record<string, unknown> = { ...fields };
  if (!isConfigFile(given))
    refuseUnknownFields("GPT2Config", given, [...Object.keys(gpt2Defaults), ...unsupported, ...asItIs]);
  const config = Object.fromEntries(
    Object.entries(gpt2Defaults).map(([name, value]) => [
      name,
      given[name] === undefined ? value : given[name],
    ]),
  ) as unknown as GPT2Config;
  for (const name of sizes) check(name, isSize(config[name]), "a whole number ≥ 1", config[name]);
  for (const name of probabilities)
    check(name, config[name] >= 0 && config[name] < 1, "in [0, 1)", config[name]);
  for (const name of positives) check(name, config[name] > 0, "positive", config[name]);
  for (const name of flags) check(name, typeof config[name] === "boolean", "true or false", config[name]);
  const { n_inner, activation_function, n_embd, n_head, n_layer } = config;
  const layers = depth(n_layer);
  check("n_layer", layers.holds(n_layer), layers.expected, n_layer);
  check("n_inner", n_inner === null || isSize(n_inner), "null or a whole number ≥ 1", n_inner);
  const names = Object.keys(activations).join(", ");
  check(
    "activation_function",
    Object.hasOwn(activations, activation_function),
    `one of ${names}`,
    activation_function,
  );
  check("n_embd", n_embd % n_head === 0, `a multiple of n_head = ${n_head}`, n_embd);
  check("model_type", [undefined, "gpt2"].includes(given.model_type as string), '"gpt2"', given.model_type);
  for (const name of unsupported)
    check(name, !given[name], "absent or false, this GPT-2 has none", given[name]);
  // A config.json with a reduced vocabulary often keeps ids of the old one.
  const isToken = (id: unknown) =>
    id === null || (Number.isSafeInteger(id) && (id as number) < config.vocab_size);
  const tokens = ["bos_token_id", "eos_token_id"].filter((name) => isToken(given[name]));
  return { ...config, ...Object.fromEntries(tokens.map((name) => [name, given[name]])) };
}

function isSize(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 1;
}

function check(field: string, holds: boolean, expected: string, got: unknown): void {
  if (holds) return;
  throw new TroupeError("MODEL_CONFIG", {
    where: "GPT2Config",
    expected: `${field} to be ${expected}`,
    got: `${JSON.stringify(got)}`,
    fields: { field, got },
  });
}
