import { bertConfig } from "../../models/bert/config.ts";
import { configOfFile } from "../../models/config-fields.ts";
import { gptJConfig } from "../../models/gpt-j/config.ts";
import { gpt2Config } from "../../models/gpt2/config.ts";
import { llamaConfig } from "../../models/llama/config.ts";
import { optConfig } from "../../models/opt/config.ts";
import { robertaConfig } from "../../models/roberta/config.ts";
import { t5Config } from "../../models/t5/config.ts";
import type { ConfigField } from "../../models/weights.ts";

/** The families that ModelCenter and this library have both, by Hugging Face's `model_type`. */
export type ModelCenterType = "bert" | "roberta" | "gpt2" | "gptj" | "opt" | "llama" | "t5";

/** The fields of a config.json. */
export type Json = Readonly<Record<string, ConfigField>>;

/** The value of a field in ModelCenter's words and in Hugging Face's, null where the latter have none. */
export type Spelling = readonly [theirs: ConfigField, huggingFace: ConfigField];

/** How ModelCenter's configuration of a family corresponds to Hugging Face's. */
export interface FamilyFields {
  /** Hugging Face's architecture: its family's name, and the head of the model that ModelCenter has. */
  readonly architecture: readonly [family: string, head: string];
  /** By ModelCenter's name: the default of its class, and Hugging Face's fields of the same meaning. */
  readonly fields: Readonly<Record<string, readonly [standard: ConfigField, ...names: readonly string[]]>>;
  /** Fields whose values are spelt differently; values that are not listed are unknown, unless they are numbers. */
  readonly spellings?: Readonly<Record<string, readonly Spelling[]>>;
  /** What ModelCenter's other fields must be for the model to be Hugging Face's; also their values in a file without them. */
  readonly fixed: Json;
  /** What Hugging Face's other fields must be for ModelCenter to have the model. */
  readonly fixedHere: Json;
  /** All of Hugging Face's fields, defaults included. @throws {TroupeError} `MODEL_CONFIG` */
  complete(fields: Json): Json;
}

/** Fields of every ModelCenter model, with the only values that Hugging Face's models correspond to. */
const everywhere = { length_scale: false, int8: false };
const withBiases = { norm_bias: true, att_bias: true, ffn_bias: true, attn_scale: true };
const encoder = { ...everywhere, ...withBiases, pos_bias_type: "none", post_layer_norm: true, tied: true };
const decoder = { ...everywhere, ...withBiases, pos_bias_type: "none", post_layer_norm: false };

const encoderFields = (vocabulary: number, width: number, heads: number, layers: number) =>
  ({
    vocab_size: [vocabulary, "vocab_size"],
    dim_model: [width, "hidden_size"],
    num_heads: [heads, "num_attention_heads"],
    dim_ff: [4 * width, "intermediate_size"],
    num_layers: [layers, "num_hidden_layers"],
    dropout_p: [0, "hidden_dropout_prob", "attention_probs_dropout_prob"],
    att_init_std: [0.02, "initializer_range"],
    ffn_activate_fn: ["gelu", "hidden_act"],
  }) as const;

/** Hugging Face leaves the inner width of these families to be four times the outer one. */
const withInnerWidth = <Config extends { n_inner: number | null; n_embd: number }>(config: Config) => ({
  ...config,
  n_inner: config.n_inner ?? 4 * config.n_embd,
});

/** Every family that can be converted. */
export const families: Readonly<Record<ModelCenterType, FamilyFields>> = {
  bert: {
    architecture: ["Bert", "ForMaskedLM"],
    fields: {
      ...encoderFields(119547, 768, 12, 12),
      type_size: [2, "type_vocab_size"],
      position_size: [512, "max_position_embeddings"],
      norm_eps: [1e-12, "layer_norm_eps"],
    },
    fixed: encoder,
    fixedHere: { tie_word_embeddings: true },
    complete: (fields) => ({ ...bertConfig(configOfFile(fields)) }),
  },
  roberta: {
    architecture: ["Roberta", "ForMaskedLM"],
    fields: {
      ...encoderFields(50265, 1024, 16, 24),
      type_size: [1, "type_vocab_size"],
      position_size: [514, "max_position_embeddings"],
      norm_eps: [1e-5, "layer_norm_eps"],
      pad_token_id: [1, "pad_token_id"],
    },
    fixed: encoder,
    fixedHere: { tie_word_embeddings: true },
    complete: (fields) => ({ ...robertaConfig(configOfFile(fields)) }),
  },
  gpt2: {
    architecture: ["GPT2", "LMHeadModel"],
    fields: {
      vocab_size: [50258, "vocab_size"],
      dim_model: [1024, "n_embd"],
      num_heads: [16, "n_head"],
      dim_ff: [4096, "n_inner"],
      num_layers: [24, "n_layer"],
      dropout_p: [0, "resid_pdrop", "embd_pdrop", "attn_pdrop"],
      position_size: [1024, "n_positions"],
      norm_eps: [1e-5, "layer_norm_epsilon"],
      att_init_std: [0.02, "initializer_range"],
      ffn_activate_fn: ["gelu", "activation_function"],
      tied: [true, "tie_word_embeddings"],
    },
    fixed: decoder,
    fixedHere: { scale_attn_weights: true, scale_attn_by_inverse_layer_idx: false },
    complete: (fields) => ({ ...withInnerWidth(gpt2Config(configOfFile(fields))) }),
  },
  gptj: {
    architecture: ["GPTJ", "ForCausalLM"],
    fields: {
      vocab_size: [50400, "vocab_size"],
      dim_model: [4096, "n_embd"],
      num_heads: [16, "n_head"],
      dim_ff: [16384, "n_inner"],
      num_layers: [28, "n_layer"],
      pos_rotary_dim: [64, "rotary_dim"],
      dropout_p: [0, "resid_pdrop", "attn_pdrop"],
      norm_eps: [1e-5, "layer_norm_epsilon"],
      att_init_std: [0.1, "initializer_range"],
      ffn_activate_fn: ["gelu", "activation_function"],
      tied: [false, "tie_word_embeddings"],
    },
    fixed: { ...decoder, att_bias: false, pos_bias_type: "rotary" },
    fixedHere: {},
    complete: (fields) => withInnerWidth(gptJConfig(configOfFile(fields))),
  },
  opt: {
    architecture: ["OPT", "ForCausalLM"],
    fields: {
      vocab_size: [50272, "vocab_size"],
      dim_model: [768, "hidden_size"],
      num_heads: [12, "num_attention_heads"],
      dim_ff: [3072, "ffn_dim"],
      num_layers: [12, "num_hidden_layers"],
      dropout_p: [0.1, "dropout", "attention_dropout"],
      pad_token_id: [1, "pad_token_id"],
      position_size: [2048, "max_position_embeddings"],
      att_init_std: [0.02, "init_std"],
      ffn_activate_fn: ["relu", "activation_function"],
    },
    fixed: { ...decoder, norm_eps: 1e-5 },
    fixedHere: {
      do_layer_norm_before: true,
      _remove_final_layer_norm: false,
      enable_bias: true,
      tie_word_embeddings: true,
    },
    complete: (fields) => ({ ...optConfig(configOfFile(fields)) }),
  },
  llama: {
    architecture: ["Llama", "ForCausalLM"],
    fields: {
      vocab_size: [32000, "vocab_size"],
      dim_model: [4096, "hidden_size"],
      num_heads: [32, "num_attention_heads"],
      num_heads_kv: [-1, "num_key_value_heads"],
      dim_head: [128, "head_dim"],
      dim_ff: [11008, "intermediate_size"],
      num_layers: [32, "num_hidden_layers"],
      dropout_p: [0, "attention_dropout"],
      norm_eps: [1e-6, "rms_norm_eps"],
      att_init_std: [0.02, "initializer_range"],
      att_bias: [false, "attention_bias"],
      ffn_bias: [false, "mlp_bias"],
      ffn_activate_fn: ["gated_silu", "hidden_act"],
      tied: [false, "tie_word_embeddings"],
    },
    spellings: {
      num_heads_kv: [[-1, null]],
      ffn_activate_fn: [
        ["gated_silu", "silu"],
        ["gated_gelu", "gelu"],
        ["gated_gelu_new", "gelu_new"],
        ["gated_relu", "relu"],
      ],
    },
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
    architecture: ["T5", "ForConditionalGeneration"],
    fields: {
      vocab_size: [32128, "vocab_size"],
      dim_model: [768, "d_model"],
      num_heads: [12, "num_heads"],
      dim_head: [64, "d_kv"],
      dim_ff: [3072, "d_ff"],
      num_encoder_layers: [12, "num_layers"],
      num_decoder_layers: [12, "num_decoder_layers"],
      dropout_p: [0, "dropout_rate"],
      position_bias_num_buckets: [32, "relative_attention_num_buckets"],
      position_bias_max_distance: [128, "relative_attention_max_distance"],
      norm_eps: [1e-6, "layer_norm_epsilon"],
      ffn_activate_fn: ["relu", "feed_forward_proj"],
      tied: [true, "tie_word_embeddings"],
    },
    spellings: {
      ffn_activate_fn: [
        ["gated_gelu_new", "gated-gelu"], // Hugging Face's name of the tanh form
        ["gated_relu", "gated-relu"],
        ["gated_silu", "gated-silu"],
        ["gelu_new", "gelu_new"],
        ["gelu", "gelu"],
        ["relu", "relu"],
      ],
    },
    fixed: {
      ...everywhere,
      norm_bias: false,
      att_bias: false,
      ffn_bias: false,
      proj_bias: false,
      attn_scale: false,
      pos_bias_type: "relative",
      post_layer_norm: false,
      // ModelCenter's original T5s have `scale`: their weights are a hundredth of Hugging Face's.
      scale: null,
    },
    fixedHere: { scale_decoder_outputs: false },
    complete: (fields) => ({ ...t5Config(configOfFile(fields)) }),
  },
};
