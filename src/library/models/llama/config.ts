import * as field from "../config-fields.ts";
import { type ConfigOf, checkField, type Field, readConfig } from "../config-fields.ts";
import { type RopeParameters, ropeNames, ropeOf } from "../rope-parameters.ts";
import type { NamedState } from "../weights.ts";

/** The families of this folder, by the `model_type` of their config.json. */
export type LlamaType = "llama" | "mistral" | "qwen2";

/** Common fields of the three families. Sizes: D hidden, H heads, G key/value heads, K head width, I inner. */
const stack = {
  vocab_size: field.size(32000),
  hidden_size: field.size(4096),
  intermediate_size: field.size(11008),
  num_hidden_layers: field.depth(32),
  num_attention_heads: field.size(32),
  /** G; null for the number of heads. */
  num_key_value_heads: field.sizeOrNull(),
  /** K; null for hidden_size / num_attention_heads. */
  head_dim: field.sizeOrNull(),
  hidden_act: field.activation("silu"),
  max_position_embeddings: field.size(2048),
  initializer_range: field.positive(0.02),
  rms_norm_eps: field.positive(1e-6),
  attention_dropout: field.probability(0),
  /** Whether the output layer is the token embedding. */
  tie_word_embeddings: field.flag(false),
  /** The row of the embedding that is not trained. */
  pad_token_id: field.tokenId(null),
};

/** Kinds of all layers by name, or null if other fields decide. */
const layerTypes: Field<readonly string[] | null> = {
  default: null,
  expected: "null or a list of full_attention and sliding_attention",
  holds: (given) =>
    given === null ||
    (Array.isArray(given) &&
      given.every((kind) => kind === "full_attention" || kind === "sliding_attention")),
};

const families = {
  llama: {
    where: "LlamaConfig",
    fields: { ...stack, attention_bias: field.flag(false), mlp_bias: field.flag(false) },
  },
  mistral: {
    where: "MistralConfig",
    fields: {
      ...stack,
      intermediate_size: field.size(14336),
      num_key_value_heads: { ...field.sizeOrNull(), default: 8 },
      max_position_embeddings: field.size(131072),
      sliding_window: { ...field.sizeOrNull(), default: 4096 },
    },
  },
  qwen2: {
    where: "Qwen2Config",
    fields: {
      ...stack,
      vocab_size: field.size(151936),
      intermediate_size: field.size(22016),
      max_position_embeddings: field.size(32768),
      use_sliding_window: field.flag(false),
      sliding_window: { ...field.sizeOrNull(), default: 4096 },
      max_window_layers: {
        ...field.size(1),
        default: 28,
        holds: (given: unknown) => Number.isSafeInteger(given),
      },
      layer_types: layerTypes,
    },
  },
} as const;

/** A LLaMA, Mistral or Qwen2, by the field names of Hugging Face's config.json. */
export type LlamaConfig = ConfigOf<typeof stack> & {
  readonly model_type: LlamaType;
  readonly num_key_value_heads: number;
  readonly head_dim: number;
  readonly rope_parameters: RopeParameters;
  /** LLaMA's: whether the maps of attention, its output included, have biases; likewise those of the feed-forward layer. */
  readonly attention_bias?: boolean;
  readonly mlp_bias?: boolean;
  /** Mistral's and Qwen2's: number of keys that a query attends to, its own included. */
  readonly sliding_window?: number | null;
  /** Qwen2's: whether layers from max_window_layers on have the window, unless layer_types says. */
  readonly use_sliding_window?: boolean;
  readonly max_window_layers?: number;
  readonly layer_types?: readonly string[] | null;
};

/**
 * Completes given fields with the family's defaults and checks them. Rotary positions may be given as in transformers 4
 * (`rope_theta`, `rope_scaling`) or 5 (`rope_parameters`).
 * @param given - some of the fields, or the parsed config.json of a model folder
 * @throws {TroupeError} `MODEL_CONFIG` naming the field, what it must be and what it is
 */
export function llamaConfig(given: Readonly<Record<string, unknown>> = {}): LlamaConfig {
  const type = (given.model_type ?? "llama") as LlamaType;
  const names = Object.keys(families);
  checkField("LlamaConfig", "model_type", names.includes(type), `one of ${names.join(", ")}`, type);
  const { where, fields } = families[type];
  const read = readConfig({ where, modelType: type, alsoRead: ropeNames }, fields, given) as ConfigOf<
    typeof stack
  >;
  const { hidden_size, num_attention_heads: heads, num_hidden_layers } = read;
  const groups = read.num_key_value_heads ?? heads;
  checkField(
    where,
    "num_attention_heads",
    heads % groups === 0,
    `a multiple of num_key_value_heads = ${groups}`,
    heads,
  );
  const divides = read.head_dim !== null || hidden_size % heads === 0;
  checkField(
    where,
    "hidden_size",
    divides,
    `a multiple of num_attention_heads = ${heads}, or head_dim given`,
    hidden_size,
  );
  const width = read.head_dim ?? hidden_size / heads;
  checkField(where, "head_dim", width % 2 === 0, "even, since features turn in pairs", width);
  const kinds = (read as Partial<LlamaConfig>).layer_types;
  checkField(
    where,
    "layer_types",
    kinds == null || kinds.length === num_hidden_layers,
    `one for each of ${num_hidden_layers} layers`,
    kinds,
  );
  return {
    ...read,
    model_type: type,
    num_key_value_heads: groups,
    head_dim: width,
    rope_parameters: ropeOf(where, given, { maxPositions: read.max_position_embeddings, headWidth: width }),
  };
}

/** Which maps have biases. */
export function biasesOf(config: LlamaConfig): {
  readonly qkv: boolean;
  readonly out: boolean;
  readonly feedForward: boolean;
} {
  const { model_type, attention_bias = false, mlp_bias = false } = config;
  return { qkv: model_type === "qwen2" || attention_bias, out: attention_bias, feedForward: mlp_bias };
}

/** Number of keys that a query of a layer attends to; undefined: all before it. */
export function windowOf(config: LlamaConfig, layer: number): number | undefined {
  const { model_type, sliding_window, use_sliding_window, max_window_layers = 0, layer_types } = config;
  if (sliding_window == null || (model_type === "qwen2" && !use_sliding_window)) return undefined;
  const slides =
    layer_types == null
      ? model_type !== "qwen2" || layer >= max_window_layers
      : layer_types[layer] === "sliding_attention";
  return slides ? sliding_window : undefined;
}

const prefixes: Readonly<Record<LlamaType, string>> = { llama: "Llama", mistral: "Mistral", qwen2: "Qwen2" };

/** The config.json with which `transformers` reads a folder as this model, in the fields of its releases 4 and 5. */
export function llamaConfigJson(config: LlamaConfig, suffix: string): NamedState["configJson"] {
  const { rope_theta, ...scaling } = config.rope_parameters;
  return {
    architectures: [`${prefixes[config.model_type]}${suffix}`],
    ...config,
    rope_parameters: { ...config.rope_parameters },
    rope_theta,
    rope_scaling: scaling.rope_type === "default" ? null : { ...config.rope_parameters },
  };
}
