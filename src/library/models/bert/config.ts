import * as field from "../config-fields.ts";
import { type ConfigOf, type ConfigRules, checkField, checkHeads, readConfig } from "../config-fields.ts";
import type { StateNaming } from "../weights.ts";

/** Common fields of all encoders like BERT, by Hugging Face's names, with BERT base's values. */
export const encoderFields = {
  vocab_size: field.size(30522),
  hidden_size: field.size(768),
  num_hidden_layers: field.depth(12),
  num_attention_heads: field.size(12),
  intermediate_size: field.size(3072),
  hidden_act: field.activation("gelu"),
  hidden_dropout_prob: field.probability(0.1),
  attention_probs_dropout_prob: field.probability(0.1),
  max_position_embeddings: field.size(512),
  type_vocab_size: field.size(2),
  initializer_range: field.positive(0.02),
  layer_norm_eps: field.positive(1e-12),
  pad_token_id: field.tokenId(0),
  tie_word_embeddings: field.flag(true),
  id2label: field.labelNames(),
  problem_type: field.problemType(),
} as const;

const bertFields = {
  ...encoderFields,
  /** Dropout of classification heads; null: that of the hidden states. */
  classifier_dropout: field.probabilityOrNull(),
} as const;

/** A BERT by the field names of Hugging Face's config.json. */
export type BertConfig = ConfigOf<typeof bertFields>;

/** Hugging Face's switches that turn an encoder into a decoder. */
export const decoderSwitches = ["is_decoder", "add_cross_attention"] as const;

/**
 * Completes given fields with BERT base's and checks them.
 * @param rules - of a family with the same fields; default BERT
 * @throws {TroupeError} `MODEL_CONFIG`
 */
export function bertConfig(
  given: Readonly<Record<string, unknown>> = {},
  rules: ConfigRules = { where: "BertConfig", modelType: "bert" },
  defaults: Readonly<Record<string, unknown>> = {},
): BertConfig {
  const alsoRead = ["position_embedding_type"];
  const config = readConfig({ unsupported: decoderSwitches, alsoRead, ...rules }, bertFields, {
    ...defaults,
    ...given,
  });
  const { position_embedding_type: positions } = given;
  const isAbsolute = positions === undefined || positions === "absolute";
  checkField(rules.where, "position_embedding_type", isAbsolute, '"absolute"', positions);
  checkHeads(rules.where, config);
  return config;
}

/**
 * Names of parameters in files of BERT's families. Old files have positions as a buffer, a tied output layer, and norms as `gamma`
 * and `beta`.
 * @param prefix - of the encoder: "bert."
 * @param tied - names of output layers that are the embedding
 */
export function encoderNaming(prefix: string, tied: readonly string[]): StateNaming {
  return {
    prefix,
    ignored: [/^embeddings\.(position_ids|token_type_ids)$/, ...tied.map((name) => new RegExp(`^${name}$`))],
    renamed: [
      [/\.gamma$/, ".weight"],
      [/\.beta$/, ".bias"],
    ],
    head: { outsidePrefix: true, names: [/^pooler\./] },
  };
}
