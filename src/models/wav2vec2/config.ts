import { checkHeads } from "../bert/config.ts";
import {
  activation,
  type ConfigOf,
  checkField,
  flag,
  oneOf,
  positive,
  probability,
  readConfig,
  size,
  sizes,
  tokenId,
} from "../config-fields.ts";

const wav2vec2Fields = {
  vocab_size: size(32),
  hidden_size: size(768),
  num_hidden_layers: size(12),
  num_attention_heads: size(12),
  intermediate_size: size(3072),
  hidden_act: activation("gelu"),
  hidden_dropout: probability(0.1),
  activation_dropout: probability(0.1),
  attention_dropout: probability(0.1),
  feat_proj_dropout: probability(0),
  final_dropout: probability(0.1),
  initializer_range: positive(0.02),
  layer_norm_eps: positive(1e-5),
  /** Whether only the first convolution is normed, over time, or every one, over channels. */
  feat_extract_norm: oneOf<"group" | "layer">("group", ["group", "layer"]),
  feat_extract_activation: activation("gelu"),
  conv_dim: sizes([512, 512, 512, 512, 512, 512, 512]),
  conv_stride: sizes([5, 2, 2, 2, 2, 2, 2]),
  conv_kernel: sizes([10, 3, 3, 3, 3, 2, 2]),
  conv_bias: flag(false),
  /** Places that the convolution of positions sees. */
  num_conv_pos_embeddings: size(128),
  num_conv_pos_embedding_groups: size(16),
  /** Whether norms stand before the halves of a layer. */
  do_stable_layer_norm: flag(false),
  ctc_loss_reduction: oneOf<"mean" | "sum">("sum", ["mean", "sum"]),
  ctc_zero_infinity: flag(false),
  /** The blank of the CTC loss. */
  pad_token_id: tokenId(0),
  apply_spec_augment: flag(false),
  layerdrop: probability(0),
} as const;

/** A wav2vec 2 by the field names of Hugging Face's config.json. */
export type Wav2Vec2Config = ConfigOf<typeof wav2vec2Fields>;

/** What asks for another computation than ours: masked spectra, layers that are left out, adapters. */
const unsupported = ["apply_spec_augment", "layerdrop", "add_adapter", "adapter_attn_dim"];

/**
 * Completes given fields with wav2vec 2 base's, without masked spectra and dropped layers, and checks them.
 * @throws {TroupeError} `MODEL_CONFIG`
 */
export function wav2vec2Config(given: Readonly<Record<string, unknown>> = {}): Wav2Vec2Config {
  const where = "Wav2Vec2Config";
  const config = readConfig({ where, modelType: "wav2vec2", unsupported }, wav2vec2Fields, given);
  checkHeads(where, config);
  const { conv_dim, conv_stride, conv_kernel } = config;
  const isEven = conv_stride.length === conv_dim.length && conv_kernel.length === conv_dim.length;
  checkField(where, "conv_dim", isEven, "as long as conv_stride and conv_kernel", conv_dim);
  const { hidden_size: width, num_conv_pos_embedding_groups: groups, pad_token_id } = config;
  checkField(where, "num_conv_pos_embedding_groups", width % groups === 0, `a divisor of ${width}`, groups);
  checkField(where, "pad_token_id", pad_token_id !== null, "a token's id, the blank", pad_token_id);
  return config;
}
