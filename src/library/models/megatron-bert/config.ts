import { type BertConfig, bertConfig, decoderSwitches } from "../bert/config.ts";

/** The same fields as BERT's. */
export type MegatronBertConfig = BertConfig;

/**
 * Completes given fields with those of Megatron's BERT of 345 million parameters, as transformers has them, and checks them.
 * @throws {TroupeError} `MODEL_CONFIG`
 */
export function megatronBertConfig(given: Readonly<Record<string, unknown>> = {}): MegatronBertConfig {
  const rules = {
    where: "MegatronBertConfig",
    modelType: "megatron-bert",
    unsupported: [...decoderSwitches, "classifier_dropout"],
  };
  return bertConfig(given, rules, {
    vocab_size: 29056,
    hidden_size: 1024,
    num_hidden_layers: 24,
    num_attention_heads: 16,
    intermediate_size: 4096,
  });
}
