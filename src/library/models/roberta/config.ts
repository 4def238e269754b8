import { type BertConfig, bertConfig } from "../bert/config.ts";
import { checkField } from "../config-fields.ts";

/** The same fields as BERT's; positions count from the padding token's id. */
export type RobertaConfig = BertConfig & { readonly pad_token_id: number };

/**
 * Completes given fields with RoBERTa base's and checks them.
 * @param rules - of an equal family with another name
 * @throws {TroupeError} `MODEL_CONFIG`
 */
export function robertaConfig(
  given: Readonly<Record<string, unknown>> = {},
  rules = { where: "RobertaConfig", modelType: "roberta" },
): RobertaConfig {
  const config = bertConfig(given, rules, {
    vocab_size: 50265,
    max_position_embeddings: 514,
    type_vocab_size: 1,
    pad_token_id: 1,
  });
  const { pad_token_id: padding } = config;
  checkField(rules.where, "pad_token_id", padding !== null, "a token's id: positions depend on it", padding);
  return config as RobertaConfig;
}
