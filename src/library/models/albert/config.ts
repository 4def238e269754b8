import { decoderSwitches, encoderFields } from "../bert/config.ts";
import * as field from "../config-fields.ts";
import { type ConfigOf, checkField, checkHeads, readConfig } from "../config-fields.ts";

const albertFields = {
  ...encoderFields,
  /** Width of the embeddings, which a matrix maps to the layers' width. */
  embedding_size: field.size(128),
  /** Groups of layers; all layers of a group use the same parameters. */
  num_hidden_groups: field.depth(1),
  /** Layers of one group. */
  inner_group_num: field.depth(1),
  classifier_dropout_prob: field.probability(0.1),
} as const;

/** An ALBERT by the field names of Hugging Face's config.json. */
export type AlbertConfig = ConfigOf<typeof albertFields>;

const defaults = {
  vocab_size: 30000,
  hidden_size: 4096,
  num_attention_heads: 64,
  intermediate_size: 16384,
  hidden_act: "gelu_new",
  hidden_dropout_prob: 0,
  attention_probs_dropout_prob: 0,
};

/**
 * Completes given fields with those of ALBERT xxlarge, as transformers has them, and checks them.
 * @throws {TroupeError} `MODEL_CONFIG`
 */
export function albertConfig(given: Readonly<Record<string, unknown>> = {}): AlbertConfig {
  const where = "AlbertConfig";
  const rules = { where, modelType: "albert", unsupported: decoderSwitches };
  const config = readConfig(rules, albertFields, { ...defaults, ...given });
  checkHeads(where, config);
  const { num_hidden_groups: groups, num_hidden_layers: layers } = config;
  checkField(where, "num_hidden_groups", groups <= layers, `at most num_hidden_layers = ${layers}`, groups);
  return config;
}
