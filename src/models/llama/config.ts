import type { RotaryScaling } from "../../nn/index.ts";
import {
  activation,
  type ConfigOf,
  checkField,
  type Field,
  type Fields,
  flag,
  positive,
  probability,
  readConfig,
  size,
  sizeOrNull,
  tokenId,
} from "../config-fields.ts";

/** The families of this folder, by the `model_type` of their config.json. */
export type LlamaType = "llama" | "mistral" | "qwen2";

/** How positions turn queries and keys, by the names of Hugging Face's `rope_parameters`. */
export interface RopeParameters {
  readonly rope_theta: number;
  readonly rope_type: RotaryScaling["kind"];
  /** Of all kinds but the default one and longrope, which may leave it out. */
  readonly factor?: number;
  /** Of llama3. */
  readonly low_freq_factor?: number;
  readonly high_freq_factor?: number;
  /** Of llama3, yarn and longrope. */
  readonly original_max_position_embeddings?: number;
  /** Of yarn and longrope; what follows from the others unless told otherwise. */
  readonly attention_factor?: number;
  /** Of yarn. */
  readonly beta_fast?: number;
  readonly beta_slow?: number;
  readonly mscale?: number;
  readonly mscale_all_dim?: number;
  readonly truncate?: boolean;
  /** Of longrope: a divisor for each pair of features. */
  readonly short_factor?: readonly number[];
  readonly long_factor?: readonly number[];
}

/** What the three families have in common. Widths: D hidden, H heads, G key/value heads, K head width, I inner. */
const stack = {
  vocab_size: size(32000),
  hidden_size: size(4096),
  intermediate_size: size(11008),
  num_hidden_layers: size(32),
  num_attention_heads: size(32),
  /** G; null for as many as there are heads. */
  num_key_value_heads: sizeOrNull(),
  /** K; null for hidden_size / num_attention_heads. */
  head_dim: sizeOrNull(),
  hidden_act: activation("silu"),
  max_position_embeddings: size(2048),
  initializer_range: positive(0.02),
  rms_norm_eps: positive(1e-6),
  attention_dropout: probability(0),
  /** Whether the output layer is the token embedding itself. */
  tie_word_embeddings: flag(false),
  /** The row of the embedding that is not trained. */
  pad_token_id: tokenId(null),
};

/** Layers of two kinds by name, or null where other fields say which are which. */
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
    fields: { ...stack, attention_bias: flag(false), mlp_bias: flag(false) },
  },
  mistral: {
    where: "MistralConfig",
    fields: {
      ...stack,
      intermediate_size: size(14336),
      num_key_value_heads: { ...sizeOrNull(), default: 8 },
      max_position_embeddings: size(131072),
      sliding_window: { ...sizeOrNull(), default: 4096 },
    },
  },
  qwen2: {
    where: "Qwen2Config",
    fields: {
      ...stack,
      vocab_size: size(151936),
      intermediate_size: size(22016),
      max_position_embeddings: size(32768),
      use_sliding_window: flag(false),
      sliding_window: { ...sizeOrNull(), default: 4096 },
      max_window_layers: { ...size(1), default: 28, holds: (given: unknown) => Number.isSafeInteger(given) },
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
  /** LLaMA's: biases of the projections of attention, its output included, and of the feed-forward layer. */
  readonly attention_bias?: boolean;
  readonly mlp_bias?: boolean;
  /** Mistral's and Qwen2's: keys that a query sees, its own among them. */
  readonly sliding_window?: number | null;
  /** Qwen2's: whether its layers from max_window_layers on have the window, unless layer_types names them. */
  readonly use_sliding_window?: boolean;
  readonly max_window_layers?: number;
  readonly layer_types?: readonly string[] | null;
};

/** What tells rotary positions, in every release's place. */
const ropeNames = [
  ...["rope_theta", "rope_scaling", "rope_parameters", "partial_rotary_factor"],
  "original_max_position_embeddings",
];

/**
 * Completes given fields with the family's defaults and checks them. Rotary positions may be told as releases 4
 * (`rope_theta`, `rope_scaling`) or 5 (`rope_parameters`) of transformers do.
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
    rope_parameters: ropeOf(where, given, read.max_position_embeddings, width),
  };
}

/** Which biases there are. */
export function biasesOf(config: LlamaConfig): {
  readonly qkv: boolean;
  readonly out: boolean;
  readonly feedForward: boolean;
} {
  const { model_type, attention_bias = false, mlp_bias = false } = config;
  return { qkv: model_type === "qwen2" || attention_bias, out: attention_bias, feedForward: mlp_bias };
}

/** How many keys a query of that layer sees; undefined for all before it. */
export function windowOf(config: LlamaConfig, layer: number): number | undefined {
  const { model_type, sliding_window, use_sliding_window, max_window_layers = 0, layer_types } = config;
  if (sliding_window == null || (model_type === "qwen2" && !use_sliding_window)) return undefined;
  const slides =
    layer_types == null
      ? model_type !== "qwen2" || layer >= max_window_layers
      : layer_types[layer] === "sliding_attention";
  return slides ? sliding_window : undefined;
}

/** The rotary scaling that a configuration asks for. */
export function scalingOf({
  rope_parameters: rope,
  max_position_embeddings: maxPositions,
}: LlamaConfig): RotaryScaling {
  const { rope_type: kind, original_max_position_embeddings: numPositions = maxPositions } = rope;
  const { factor = maxPositions / numPositions } = rope;
  switch (kind) {
    case "default":
      return { kind };
    case "linear":
      return { kind, factor };
    case "dynamic":
      return { kind, factor, numPositions: maxPositions };
    case "llama3": {
      const { low_freq_factor: lowTurns = 1, high_freq_factor: highTurns = 4 } = rope;
      return { kind, factor, lowTurns, highTurns, numPositions };
    }
    case "yarn": {
      const { beta_fast: fastTurns = 32, beta_slow: slowTurns = 1, truncate: truncated = true } = rope;
      const attentionFactor = rope.attention_factor ?? sharpness(factor, rope);
      return { kind, factor, numPositions, fastTurns, slowTurns, truncated, attentionFactor };
    }
    case "longrope": {
      const { short_factor: short = [], long_factor: long = [] } = rope;
      const told = factor <= 1 ? 1 : Math.sqrt(1 + Math.log(factor) / Math.log(numPositions));
      return { kind, short, long, numPositions, attentionFactor: rope.attention_factor ?? told };
    }
  }
}

/** Positions up to which a configuration's rotary angles are meant: a dynamic scaling is for what lies beyond its own. */
export function longestContext({
  rope_parameters: rope,
  max_position_embeddings: maxPositions,
}: LlamaConfig): number {
  return rope.rope_type === "dynamic" ? Math.ceil(maxPositions * (rope.factor ?? 1)) : maxPositions;
}

/** What a rope's parameters must be beside the base, by its kind. */
const ropeFields: Readonly<Record<RotaryScaling["kind"], Fields>> = {
  default: {},
  linear: { factor: positiveNumber() },
  dynamic: { factor: positiveNumber() },
  llama3: {
    factor: positiveNumber(),
    low_freq_factor: positiveNumber(),
    high_freq_factor: positiveNumber(),
    original_max_position_embeddings: optional(positiveNumber()),
  },
  yarn: {
    factor: optional(positiveNumber()),
    original_max_position_embeddings: optional(positiveNumber()),
    attention_factor: optional(positiveNumber()),
    beta_fast: optional(positiveNumber()),
    beta_slow: optional(positiveNumber()),
    mscale: optional(positiveNumber()),
    mscale_all_dim: optional(positiveNumber()),
    truncate: optional(flag(true)),
  },
  longrope: {
    factor: optional(positiveNumber()),
    original_max_position_embeddings: optional(positiveNumber()),
    attention_factor: optional(positiveNumber()),
    short_factor: divisors(),
    long_factor: divisors(),
  },
};

function ropeOf(
  where: string,
  given: Readonly<Record<string, unknown>>,
  maxPositions: number,
  headWidth: number,
): RopeParameters {
  const told = {
    ...(given.rope_scaling as object | null),
    ...(given.rope_parameters as object | null),
  } as Readonly<Record<string, unknown>>;
  const type = (told.rope_type ?? told.type ?? "default") as RotaryScaling["kind"];
  const kinds = Object.keys(ropeFields);
  checkField(where, "rope_type", kinds.includes(type), `one of ${kinds.join(", ")}`, type);
  const { partial_rotary_factor: partial = given.partial_rotary_factor } = told;
  checkField(where, "partial_rotary_factor", partial == null || partial === 1, "1 or absent", partial);
  const theta = told.rope_theta ?? given.rope_theta ?? 10000;
  const { holds, expected } = positiveNumber();
  checkField(where, "rope_theta", holds(theta), expected, theta);
  const rope: Record<string, unknown> = { rope_theta: theta, rope_type: type };
  for (const [name, field] of Object.entries(ropeFields[type])) {
    // Phi and its kin tell it beside the rope's own parameters.
    const beside = name === "original_max_position_embeddings" ? given[name] : undefined;
    const value = told[name] ?? beside ?? undefined;
    checkField(where, name, field.holds(value), field.expected, value);
    if (value !== undefined) rope[name] = value;
  }
  const { low_freq_factor: low = 0, high_freq_factor: high = 1 } = rope as Partial<RopeParameters>;
  checkField(where, "high_freq_factor", high > low, `above low_freq_factor = ${low}`, high);
  for (const name of ["short_factor", "long_factor"] as const) {
    const numbers = (rope as Partial<RopeParameters>)[name];
    const fits = numbers === undefined || numbers.length === headWidth / 2;
    checkField(where, name, fits, `${headWidth / 2} numbers, one for each pair of features`, numbers);
  }
  const needs = "original_max_position_embeddings" in ropeFields[type];
  return { ...(needs && { original_max_position_embeddings: maxPositions }), ...rope } as RopeParameters;
}

// As transformers' `_compute_yarn_parameters`.
function sharpness(factor: number, { mscale, mscale_all_dim }: RopeParameters): number {
  const of = (scale: number) => (factor <= 1 ? 1 : 0.1 * scale * Math.log(factor) + 1);
  return mscale === undefined || mscale_all_dim === undefined ? of(1) : of(mscale) / of(mscale_all_dim);
}

function positiveNumber(): Field<unknown> {
  return positive(1) as Field<unknown>;
}

function optional(field: Field<unknown>): Field<unknown> {
  return { ...field, holds: (value) => value === undefined || field.holds(value) };
}

function divisors(): Field<unknown> {
  const { holds } = positive(1);
  return {
    default: undefined,
    expected: "a list of positive numbers",
    holds: (value) => Array.isArray(value) && value.every(holds),
  };
}
