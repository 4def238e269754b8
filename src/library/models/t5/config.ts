import { type ActivationName, activations } from "../../../compute/nn/index.ts";
import * as field from "../config-fields.ts";
import { type ConfigOf, checkField, configJsonOf, type Field, readConfig } from "../config-fields.ts";
import type { NamedState, StateNaming } from "../weights.ts";

/** An activation, optionally gated: multiplied by the features of another map. */
type FeedForward = ActivationName | `gated-${ActivationName}`;
const feedForwards = (Object.keys(activations) as ActivationName[]).flatMap((name): FeedForward[] => [
  name,
  `gated-${name}`,
]);

const fields = {
  vocab_size: field.size(32128),
  /** Width D of the residual stream. */
  d_model: field.size(512),
  /** Width K of a head. */
  d_kv: field.size(64),
  /** Width I of the feed-forward layer. */
  d_ff: field.size(2048),
  /** Layers of the encoder. */
  num_layers: field.depth(6),
  /** Layers of the decoder; null for those of the encoder. */
  num_decoder_layers: field.sizeOrNull(),
  num_heads: field.size(8),
  relative_attention_num_buckets: field.size(32),
  relative_attention_max_distance: field.size(128),
  dropout_rate: field.probability(0.1),
  layer_norm_epsilon: field.positive(1e-6),
  /** Factor of the standard deviations of initial weights. */
  initializer_factor: field.positive(1),
  feed_forward_proj: field.oneOf<FeedForward>("relu", feedForwards),
  /** Whether the output layer is the token embedding. */
  tie_word_embeddings: field.flag(true),
  /** Whether hidden states are divided by √D before the output layer; null: only if it is tied. */
  scale_decoder_outputs: {
    default: null,
    expected: "null, true or false",
    holds: (given) => given === null || typeof given === "boolean",
  } as Field<boolean | null>,
  pad_token_id: field.tokenId(0),
  eos_token_id: field.tokenId(1),
  /** First token of the decoder; null for the padding token. */
  decoder_start_token_id: field.tokenId(null),
};

/** A T5, by the field names of Hugging Face's config.json. */
export type T5Config = Omit<
  ConfigOf<typeof fields>,
  "num_decoder_layers" | "scale_decoder_outputs" | "decoder_start_token_id"
> & {
  readonly num_decoder_layers: number;
  readonly scale_decoder_outputs: boolean;
  readonly decoder_start_token_id: number;
};

/**
 * Completes given fields with T5's defaults and checks them.
 * @param given - some of the fields, or the parsed config.json of a model folder
 * @throws {TroupeError} `MODEL_CONFIG` naming the field, what it must be and what it is
 */
export function t5Config(given: Readonly<Record<string, unknown>> = {}): T5Config {
  const where = "T5Config";
  const config = readConfig({ where, modelType: "t5" }, fields, given);
  const { num_layers, num_decoder_layers, tie_word_embeddings, scale_decoder_outputs } = config;
  const buckets = config.relative_attention_num_buckets;
  checkField(where, "relative_attention_num_buckets", buckets >= 4, "at least 4", buckets);
  const distance = config.relative_attention_max_distance;
  checkField(
    where,
    "relative_attention_max_distance",
    distance > Math.floor(buckets / 2),
    `above ${Math.floor(buckets / 2)}, half the buckets`,
    distance,
  );
  return {
    ...config,
    num_decoder_layers: num_decoder_layers ?? num_layers,
    scale_decoder_outputs: scale_decoder_outputs ?? tie_word_embeddings,
    decoder_start_token_id: config.decoder_start_token_id ?? config.pad_token_id ?? 0,
  };
}

/** The activation of the feed-forward layer and whether it is gated. Hugging Face's "gated-gelu" is the tanh form. */
export function feedForwardOf({ feed_forward_proj: name }: T5Config): {
  readonly activation: ActivationName;
  readonly isGated: boolean;
} {
  if (name === "gated-gelu") return { activation: "gelu_new", isGated: true };
  const isGated = name.startsWith("gated-");
  return { activation: (isGated ? name.slice("gated-".length) : name) as ActivationName, isGated };
}

/** Names of the parameters in Hugging Face's files. Some have copies of the shared embedding, or a bias that no layer reads. */
export function t5Naming(withoutHead: boolean): StateNaming {
  const again = /^(encoder|decoder)\.embed_tokens\.weight$/;
  const unread = /^decoder\.block\.0\.layer\.1\.EncDecAttention\.relative_attention_bias\.weight$/;
  return { prefix: "", ignored: withoutHead ? [again, unread, /^lm_head\.weight$/] : [again, unread] };
}

/** The config.json with which `transformers` reads a folder as this model. */
export function t5ConfigJson(config: T5Config, architecture: string): NamedState["configJson"] {
  const { activation, isGated } = feedForwardOf(config);
  const derived = { dense_act_fn: activation, is_gated_act: isGated, is_encoder_decoder: true };
  return configJsonOf({ ...config, ...derived }, "t5", architecture);
}
