import * as field from "../config-fields.ts";
import { type ConfigOf, checkField, checkHeads, type Field, readConfig } from "../config-fields.ts";
import type { StateNaming } from "../weights.ts";

/** Common fields of wav2vec 2 and data2vec's audio model, by Hugging Face's names in config.json. */
export const speechFields = {
  vocab_size: field.size(32),
  hidden_size: field.size(768),
  num_hidden_layers: field.depth(12),
  num_attention_heads: field.size(12),
  intermediate_size: field.size(3072),
  hidden_act: field.activation("gelu"),
  hidden_dropout: field.probability(0.1),
  activation_dropout: field.probability(0.1),
  attention_dropout: field.probability(0.1),
  feat_proj_dropout: field.probability(0),
  final_dropout: field.probability(0.1),
  /** Probability that training skips a layer. */
  layerdrop: field.probability(0.1),
  initializer_range: field.positive(0.02),
  layer_norm_eps: field.positive(1e-5),
  feat_extract_activation: field.activation("gelu"),
  conv_dim: field.sizes([512, 512, 512, 512, 512, 512, 512]),
  conv_stride: field.sizes([5, 2, 2, 2, 2, 2, 2]),
  conv_kernel: field.sizes([10, 3, 3, 3, 3, 2, 2]),
  conv_bias: field.flag(false),
  num_conv_pos_embedding_groups: field.size(16),
  /** Whether training masks frames and features, as the next six fields say. */
  apply_spec_augment: field.flag(true),
  /** Approximate share of masked frames. */
  mask_time_prob: share(0.05),
  /** Frames in a masked span. */
  mask_time_length: field.size(10),
  /** Minimum number of masked spans in a recording. */
  mask_time_min_masks: count(2),
  mask_feature_prob: share(0),
  mask_feature_length: field.size(10),
  mask_feature_min_masks: count(0),
  ctc_loss_reduction: field.oneOf<"mean" | "sum">("sum", ["mean", "sum"]),
  ctc_zero_infinity: field.flag(false),
  /** Blank of the CTC loss. */
  pad_token_id: field.tokenId(0),
  /** Whether convolutions after the layers reduce the number of frames. */
  add_adapter: field.flag(false),
  num_adapter_layers: field.depth(3),
  adapter_kernel_size: field.size(3),
  adapter_stride: field.size(2),
  /** Width after the adapter; null for the layers'. */
  output_hidden_size: field.sizeOrNull(),
  /** Whether a classifier reads a mean of all layers' states with learned weights; else the last states. */
  use_weighted_layer_sum: field.flag(false),
  /** Width of the projected states that a classifier averages over frames. */
  classifier_proj_size: field.size(256),
  id2label: field.labelNames(),
} as const;

const wav2vec2Fields = {
  ...speechFields,
  /** Norms of convolutions: "group", of the first one over time, or "layer", of all over channels. */
  feat_extract_norm: field.oneOf<"group" | "layer">("group", ["group", "layer"]),
  /** Kernel size of the positional convolution. */
  num_conv_pos_embeddings: field.size(128),
  /** Whether norms come before the halves of a layer. */
  do_stable_layer_norm: field.flag(false),
  /** Inner width of each layer's language adapter, for layers with norms before their halves; null: no adapters. */
  adapter_attn_dim: field.sizeOrNull(),
  /** The following fields are for pre-training only. Codes in a codebook; a frame's target is one code of each codebook. */
  num_codevectors_per_group: field.size(320),
  num_codevector_groups: field.size(2),
  /** Width of all of a frame's codes together. */
  codevector_dim: field.size(256),
  /** Width in which states and targets are compared. */
  proj_codevector_dim: field.size(256),
  feat_quantizer_dropout: field.probability(0),
  /** Divisor of the cosines. */
  contrastive_logits_temperature: field.positive(0.1),
  /** Number of distractors drawn for each masked frame. */
  num_negatives: field.size(100),
  /** Weight of the diversity loss. */
  diversity_loss_weight: share(0.1),
} as const;

/** The fields of a configuration that the parts of a speech model need. */
export type SpeechConfig = ConfigOf<typeof speechFields> & {
  readonly feat_extract_norm: "group" | "layer";
  readonly do_stable_layer_norm: boolean;
  readonly adapter_attn_dim?: number | null;
};

/** A wav2vec 2 by the field names of Hugging Face's config.json. */
export type Wav2Vec2Config = ConfigOf<typeof wav2vec2Fields>;

/**
 * Completes given fields with wav2vec 2 base's, as transformers has them, and checks them.
 * @throws {TroupeError} `MODEL_CONFIG`
 */
export function wav2vec2Config(given: Readonly<Record<string, unknown>> = {}): Wav2Vec2Config {
  const where = "Wav2Vec2Config";
  const rules = { where, modelType: "wav2vec2", alsoRead: [NUM_CONVOLUTIONS] };
  const config = readConfig(rules, wav2vec2Fields, given);
  checkSpeech(where, config, given[NUM_CONVOLUTIONS]);
  return config;
}

/** Field with the number of convolutions, which must be the length of conv_dim. */
export const NUM_CONVOLUTIONS = "num_feat_extract_layers";

/**
 * @param numConvolutions - the value of {@link NUM_CONVOLUTIONS}, if given
 * @throws {TroupeError} `MODEL_CONFIG` for fields that contradict each other
 */
export function checkSpeech(
  where: string,
  config: ConfigOf<typeof speechFields>,
  numConvolutions: unknown,
): void {
  checkHeads(where, config);
  const { conv_dim, conv_stride, conv_kernel } = config;
  const isEven = conv_stride.length === conv_dim.length && conv_kernel.length === conv_dim.length;
  const isSaid = numConvolutions === undefined || numConvolutions === conv_dim.length;
  checkField(where, NUM_CONVOLUTIONS, isSaid, `the length of conv_dim, ${conv_dim.length}`, numConvolutions);
  checkField(where, "conv_dim", isEven, "as long as conv_stride and conv_kernel", conv_dim);
  const { hidden_size: width, num_conv_pos_embedding_groups: groups, pad_token_id } = config;
  checkField(where, "num_conv_pos_embedding_groups", width % groups === 0, `a divisor of ${width}`, groups);
  checkField(where, "pad_token_id", pad_token_id !== null, "a token's id, the blank", pad_token_id);
  const { mask_feature_prob, mask_feature_length, layerdrop, add_adapter } = config;
  const masks = mask_feature_prob === 0 || mask_feature_length <= width;
  checkField(where, "mask_feature_length", masks, `at most hidden_size = ${width}`, mask_feature_length);
  // The adapter changes the number of frames, so its layers cannot be skipped.
  checkField(where, "layerdrop", !add_adapter || layerdrop === 0, "0 with add_adapter", layerdrop);
}

/** Whether a model has a vector for masked frames, as in transformers. */
export function hasMaskVector({ mask_time_prob, mask_feature_prob }: SpeechConfig): boolean {
  return mask_time_prob > 0 || mask_feature_prob > 0;
}

/** Width of the states that a head reads. */
export function outputWidth({ add_adapter, output_hidden_size, hidden_size }: SpeechConfig): number {
  return add_adapter ? (output_hidden_size ?? hidden_size) : hidden_size;
}

/** A share, possibly above 1 since spans may overlap. */
function share(value: number): Field<number> {
  return {
    default: value,
    expected: "at least 0",
    holds: (given) => typeof given === "number" && given >= 0 && Number.isFinite(given),
  };
}

function count(value: number): Field<number> {
  return {
    default: value,
    expected: "a whole number ≥ 0",
    holds: (given) => Number.isSafeInteger(given) && (given as number) >= 0,
  };
}

/**
 * Names of speech models' parameters in files; torch's older weight norm has `weight_g` and `weight_v`.
 * @param ignored - other entries of files; default: the parts for pre-training only
 */
export function speechNaming(
  prefix: string,
  ignored: readonly RegExp[] = [/^(quantizer|project_q|project_hid)\./],
): StateNaming {
  return {
    prefix,
    ignored,
    renamed: [
      [/^(encoder\.pos_conv_embed\.conv)\.weight_g$/, "$1.parametrizations.weight.original0"],
      [/^(encoder\.pos_conv_embed\.conv)\.weight_v$/, "$1.parametrizations.weight.original1"],
    ],
    head: { outsidePrefix: true, names: [/^masked_spec_embed$/, /^adapter\./] },
  };
}
