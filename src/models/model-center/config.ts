import { isDeepStrictEqual } from "node:util";
import { bertConfig } from "../bert/config.ts";
import { checkField, configOfFile } from "../config-fields.ts";
import { gptJConfig } from "../gpt-j/config.ts";
import { gpt2Config } from "../gpt2/config.ts";
import { llamaConfig } from "../llama/config.ts";
import { optConfig } from "../opt/config.ts";
import { robertaConfig } from "../roberta/config.ts";
import { t5Config } from "../t5/config.ts";
import type { ConfigField } from "../weights.ts";

/** The families that ModelCenter and this library have both, by Hugging Face's `model_type`. */
export type ModelCenterType = "bert" | "roberta" | "gpt2" | "gptj" | "opt" | "llama" | "t5";

type Json = Readonly<Record<string, ConfigField>>;

/** A field of ModelCenter's configuration and Hugging Face's of the same meaning. */
interface FieldPair {
  readonly there: string;
  readonly here: string;
  /** What its class takes where its file says nothing. */
  readonly default: ConfigField;
  /** Values that are spelt otherwise here, or null where the two have other words for none; any others are the same. */
  readonly spelt?: readonly (readonly [there: ConfigField, here: ConfigField])[];
}

interface FamilyFields {
  readonly pairs: readonly FieldPair[];
  /** What its fields must be for the model to be Hugging Face's; they are, where its file says nothing. */
  readonly fixed: Json;
  /** What Hugging Face's fields must be for ModelCenter to have the model. */
  readonly fixedHere: Json;
  /** Hugging Face's fields, all of them. @throws {TroupeError} `MODEL_CONFIG` */
  complete(fields: Json): Json;
}

const pair = (there: string, here: string, value: ConfigField, spelt?: FieldPair["spelt"]): FieldPair => ({
  there,
  here,
  default: value,
  ...(spelt && { spelt }),
});

/** What all of its models are given, and compute nothing else of ours by. */
const everywhere = { length_scale: false, int8: false };
const withBiases = { norm_bias: true, att_bias: true, ffn_bias: true, attn_scale: true };
const withoutPositionBias = { pos_bias_type: "none" };

const encoderPairs = (defaults: { vocab: number; width: number; heads: number; layers: number }) => [
  pair("vocab_size", "vocab_size", defaults.vocab),
  pair("dim_model", "hidden_size", defaults.width),
  pair("num_heads", "num_attention_heads", defaults.heads),
  pair("dim_ff", "intermediate_size", 4 * defaults.width),
  pair("num_layers", "num_hidden_layers", defaults.layers),
  pair("dropout_p", "hidden_dropout_prob", 0),
  pair("dropout_p", "attention_probs_dropout_prob", 0),
  pair("att_init_std", "initializer_range", 0.02),
  pair("ffn_activate_fn", "hidden_act", "gelu"),
];

const decoderPairs = {
  gpt2: [
    pair("vocab_size", "vocab_size", 50258),
    pair("dim_model", "n_embd", 1024),
    pair("num_heads", "n_head", 16),
    pair("dim_ff", "n_inner", 4096),
    pair("num_layers", "n_layer", 24),
    pair("dropout_p", "resid_pdrop", 0),
    pair("dropout_p", "embd_pdrop", 0),
    pair("dropout_p", "attn_pdrop", 0),
    pair("position_size", "n_positions", 1024),
    pair("norm_eps", "layer_norm_epsilon", 1e-5),
    pair("att_init_std", "initializer_range", 0.02),
    pair("ffn_activate_fn", "activation_function", "gelu"),
    pair("tied", "tie_word_embeddings", true),
  ],
  gptj: [
    pair("vocab_size", "vocab_size", 50400),
    pair("dim_model", "n_embd", 4096),
    pair("num_heads", "n_head", 16),
    pair("dim_ff", "n_inner", 16384),
    pair("num_layers", "n_layer", 28),
    pair("pos_rotary_dim", "rotary_dim", 64),
    pair("dropout_p", "resid_pdrop", 0),
    pair("dropout_p", "attn_pdrop", 0),
    pair("norm_eps", "layer_norm_epsilon", 1e-5),
    pair("att_init_std", "initializer_range", 0.1),
    pair("ffn_activate_fn", "activation_function", "gelu"),
    pair("tied", "tie_word_embeddings", false),
  ],
  opt: [
    pair("vocab_size", "vocab_size", 50272),
    pair("dim_model", "hidden_size", 768),
    pair("num_heads", "num_attention_heads", 12),
    pair("dim_ff", "ffn_dim", 3072),
    pair("num_layers", "num_hidden_layers", 12),
    pair("dropout_p", "dropout", 0.1),
    pair("dropout_p", "attention_dropout", 0.1),
    pair("pad_token_id", "pad_token_id", 1),
    pair("position_size", "max_position_embeddings", 2048),
    pair("att_init_std", "init_std", 0.02),
    pair("ffn_activate_fn", "activation_function", "relu"),
  ],
  llama: [
    pair("vocab_size", "vocab_size", 32000),
    pair("dim_model", "hidden_size", 4096),
    pair("num_heads", "num_attention_heads", 32),
    pair("num_heads_kv", "num_key_value_heads", -1, [[-1, null]]),
    pair("dim_head", "head_dim", 128),
    pair("dim_ff", "intermediate_size", 11008),
    pair("num_layers", "num_hidden_layers", 32),
    pair("dropout_p", "attention_dropout", 0),
    pair("norm_eps", "rms_norm_eps", 1e-6),
    pair("att_init_std", "initializer_range", 0.02),
    pair("att_bias", "attention_bias", false),
    pair("ffn_bias", "mlp_bias", false),
    pair("ffn_activate_fn", "hidden_act", "gated_silu", [
      ["gated_silu", "silu"],
      ["gated_gelu", "gelu"],
      ["gated_gelu_new", "gelu_new"],
      ["gated_relu", "relu"],
    ]),
    pair("tied", "tie_word_embeddings", false),
  ],
} as const;

const families: Readonly<Record<ModelCenterType, FamilyFields>> = {
  bert: {
    pairs: [
      ...encoderPairs({ vocab: 119547, width: 768, heads: 12, layers: 12 }),
      pair("type_size", "type_vocab_size", 2),
      pair("position_size", "max_position_embeddings", 512),
      pair("norm_eps", "layer_norm_eps", 1e-12),
    ],
    fixed: { ...everywhere, ...withBiases, ...withoutPositionBias, post_layer_norm: true, tied: true },
    fixedHere: { tie_word_embeddings: true },
    complete: (fields) => ({ ...bertConfig(configOfFile(fields)) }),
  },
  roberta: {
    pairs: [
      ...encoderPairs({ vocab: 50265, width: 1024, heads: 16, layers: 24 }),
      pair("type_size", "type_vocab_size", 1),
      pair("position_size", "max_position_embeddings", 514),
      pair("norm_eps", "layer_norm_eps", 1e-5),
      pair("pad_token_id", "pad_token_id", 1),
    ],
    fixed: { ...everywhere, ...withBiases, ...withoutPositionBias, post_layer_norm: true, tied: true },
    fixedHere: { tie_word_embeddings: true },
    complete: (fields) => ({ ...robertaConfig(configOfFile(fields)) }),
  },
  gpt2: {
    pairs: decoderPairs.gpt2,
    fixed: { ...everywhere, ...withBiases, ...withoutPositionBias, post_layer_norm: false },
    fixedHere: { scale_attn_weights: true, scale_attn_by_inverse_layer_idx: false },
    complete: (fields) => {
      const config = gpt2Config(configOfFile(fields));
      return { ...config, n_inner: config.n_inner ?? 4 * config.n_embd } as Json;
    },
  },
  gptj: {
    pairs: decoderPairs.gptj,
    fixed: {
      ...everywhere,
      ...withBiases,
      att_bias: false,
      pos_bias_type: "rotary",
      post_layer_norm: false,
    },
    fixedHere: {},
    complete: (fields) => {
      const config = gptJConfig(configOfFile(fields));
      return { ...config, n_inner: config.n_inner ?? 4 * config.n_embd };
    },
  },
  opt: {
    pairs: decoderPairs.opt,
    fixed: { ...everywhere, ...withBiases, ...withoutPositionBias, post_layer_norm: false, norm_eps: 1e-5 },
    fixedHere: {
      do_layer_norm_before: true,
      _remove_final_layer_norm: false,
      enable_bias: true,
      tie_word_embeddings: true,
    },
    complete: (fields) => ({ ...optConfig(configOfFile(fields)) }),
  },
  llama: {
    pairs: decoderPairs.llama,
    fixed: {
      ...everywhere,
      attn_scale: true,
      norm_bias: false,
      pos_bias_type: "rotary",
      post_layer_norm: false,
    },
    fixedHere: { rope_parameters: { rope_type: "default", rope_theta: 10000 } },
    complete: (fields) => ({ ...llamaConfig(configOfFile(fields)) }) as unknown as Json,
  },
  t5: {
    pairs: [
      pair("vocab_size", "vocab_size", 32128),
      pair("dim_model", "d_model", 768),
      pair("num_heads", "num_heads", 12),
      pair("dim_head", "d_kv", 64),
      pair("dim_ff", "d_ff", 3072),
      pair("num_encoder_layers", "num_layers", 12),
      pair("num_decoder_layers", "num_decoder_layers", 12),
      pair("dropout_p", "dropout_rate", 0),
      pair("position_bias_num_buckets", "relative_attention_num_buckets", 32),
      pair("position_bias_max_distance", "relative_attention_max_distance", 128),
      pair("norm_eps", "layer_norm_epsilon", 1e-6),
      pair("ffn_activate_fn", "feed_forward_proj", "relu", [
        ["gated_gelu_new", "gated-gelu"], // which is how Hugging Face calls the tanh form there
        ["gated_relu", "gated-relu"],
        ["gated_silu", "gated-silu"],
        ["gelu_new", "gelu_new"],
        ["gelu", "gelu"],
        ["relu", "relu"],
      ]),
      pair("tied", "tie_word_embeddings", true),
    ],
    // Its original T5s have `scale`: weights of a hundredth, which is more than another form.
    fixed: {
      ...everywhere,
      norm_bias: false,
      att_bias: false,
      ffn_bias: false,
      proj_bias: false,
      attn_scale: false,
      pos_bias_type: "relative",
      post_layer_norm: false,
      scale: null,
    },
    fixedHere: { scale_decoder_outputs: false },
    complete: (fields) => ({ ...t5Config(configOfFile(fields)) }),
  },
};

const where = "model-center";

/** Widths of heads follow from others in all families but these, which have a field of them. */
const hasHeadWidth = (type: ModelCenterType) => type === "llama" || type === "t5";

/** Whether fields are those of a ModelCenter config.json. */
export function isModelCenterConfig(config: Readonly<Record<string, unknown>>): boolean {
  return "dim_model" in config;
}

/**
 * Hugging Face's config.json of the model that ModelCenter's describes.
 * @throws {TroupeError} `MODEL_CONFIG` for what Hugging Face's model does not have
 */
export function fromModelCenterConfig(type: ModelCenterType, config: Json): Json {
  const { pairs, fixed } = families[type];
  for (const [field, expected] of Object.entries(fixed)) {
    const value = config[field] ?? expected;
    const holds = value === expected || (!value && !expected);
    checkField(where, field, holds, `${JSON.stringify(expected)}, as in Hugging Face's ${type}`, value);
  }
  const fields = Object.fromEntries(
    pairs.map(({ there, here, default: value, spelt }) => {
      const given = config[there] ?? value;
      const known = spelt?.find(([theirs]) => theirs === given);
      const isKnown = spelt === undefined || known !== undefined || typeof given === "number";
      checkField(where, there, isKnown, `one of ${spelt?.map(([name]) => name).join(", ")}`, given);
      return [here, known === undefined ? given : known[1]];
    }),
  );
  if (!hasHeadWidth(type)) {
    const { dim_model = 0, num_heads = 1, dim_head = Number(dim_model) / Number(num_heads) } = config;
    const isWhole = Number(dim_head) * Number(num_heads) === Number(dim_model);
    checkField(where, "dim_head", isWhole, "dim_model / num_heads", dim_head);
  }
  const head = typeof config.cls_head === "number" && config.cls_head > 0 ? config.cls_head : undefined;
  const isEncoder = type === "bert" || type === "roberta";
  checkField(where, "cls_head", head === undefined || isEncoder, "none beside a decoder", config.cls_head);
  return {
    ...fields,
    ...families[type].fixedHere,
    model_type: type,
    architectures: [architectures[type] + (head !== undefined ? "ForTokenClassification" : suffixes[type])],
    ...(head !== undefined && labels(head)),
  };
}

/**
 * ModelCenter's config.json of the model that Hugging Face's describes.
 * @throws {TroupeError} `MODEL_CONFIG` for what ModelCenter's model does not have
 */
export function toModelCenterConfig(type: ModelCenterType, given: Json): Json {
  const { pairs, fixed, fixedHere, complete } = families[type];
  const config = complete(given);
  for (const [field, expected] of Object.entries(fixedHere)) {
    const holds = isDeepStrictEqual(config[field], expected);
    checkField(where, field, holds, `${JSON.stringify(expected)}, as in ModelCenter`, config[field]);
  }
  if (type === "opt")
    checkField(
      where,
      "word_embed_proj_dim",
      config.word_embed_proj_dim === config.hidden_size,
      `${config.hidden_size}, as in ModelCenter`,
      config.word_embed_proj_dim,
    );
  const fields: Record<string, ConfigField> = {};
  for (const { there, here, spelt } of pairs) {
    const value = config[here] as ConfigField;
    const known = spelt?.find(([, ours]) => ours === value);
    const isKnown = spelt === undefined || known !== undefined || typeof value === "number";
    checkField(where, here, isKnown, `one of ${spelt?.map(([, name]) => name).join(", ")}`, value);
    fields[there] ??= known === undefined ? value : known[0];
  }
  if (!hasHeadWidth(type)) fields.dim_head = Number(fields.dim_model) / Number(fields.num_heads);
  const isTagger = architectureOf(given).endsWith("ForTokenClassification");
  const numLabels = Object.keys((config.id2label ?? {}) as object).length;
  const initial = fields.att_init_std;
  return {
    ...fields,
    ...(initial !== undefined && { emb_init_std: initial, ffn_init_std: initial, proj_init_std: initial }),
    ...fixed,
    cls_head: isTagger ? numLabels : null,
  };
}

/** The first of a config.json's architectures; empty where it names none. */
export function architectureOf({ architectures: names }: Readonly<Record<string, unknown>>): string {
  return String((names as readonly string[] | undefined)?.[0] ?? "");
}

const architectures: Readonly<Record<ModelCenterType, string>> = {
  bert: "Bert",
  roberta: "Roberta",
  gpt2: "GPT2",
  gptj: "GPTJ",
  opt: "OPT",
  llama: "Llama",
  t5: "T5",
};

const suffixes: Readonly<Record<ModelCenterType, string>> = {
  bert: "ForMaskedLM",
  roberta: "ForMaskedLM",
  gpt2: "LMHeadModel",
  gptj: "ForCausalLM",
  opt: "ForCausalLM",
  llama: "ForCausalLM",
  t5: "ForConditionalGeneration",
};

function labels(count: number): Json {
  const names = Array.from({ length: count }, (_, id) => `LABEL_${id}`);
  return {
    id2label: Object.fromEntries(names.map((name, id) => [String(id), name])),
    label2id: Object.fromEntries(names.map((name, id) => [name, id])),
  };
}
