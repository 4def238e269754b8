import {
  activation,
  type ConfigOf,
  type ConfigRules,
  checkField,
  depth,
  flag,
  labelNames,
  oneOf,
  positive,
  probability,
  probabilityOrNull,
  readConfig,
  size,
  tokenId,
} from "../config-fields.ts";
import type { ProblemType } from "../heads/index.ts";

/** Common fields of all encoders like BERT, by Hugging Face's names, with BERT base's values. */
export const encoderFields = {
  vocab_size: size(30522),
  hidden_size: size(768),
  num_hidden_layers: depth(12),
  num_attention_heads: size(12),
  intermediate_size: size(3072),
  hidden_act: activation("gelu"),
  hidden_dropout_prob: probability(0.1),
  attention_probs_dropout_prob: probability(0.1),
  max_position_embeddings: size(512),
  type_vocab_size: size(2),
  initializer_range: positive(0.02),
  layer_norm_eps: positive(1e-12),
  pad_token_id: tokenId(0),
  tie_word_embeddings: flag(true),
  id2label: labelNames(),
  problem_type: oneOf<ProblemType>(null, [
    null,
    "regression",
    "single_label_classification",
    "multi_label_classification",
  ]),
} as const;

const bertFields = {
  ...encoderFields,
  /** Dropout of classification heads; null: that of the hidden states. */
  classifier_dropout: probabilityOrNull(),
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

/** @throws {TroupeError} `MODEL_CONFIG` unless the heads divide the width */
export function checkHeads(
  where: string,
  config: { readonly hidden_size: number; readonly num_attention_heads: number },
): void {
  const { hidden_size: width, num_attention_heads: heads } = config;
  checkField(
    where,
    "hidden_size",
    width % heads === 0,
    `a multiple of num_attention_heads = ${heads}`,
    width,
  );
}
