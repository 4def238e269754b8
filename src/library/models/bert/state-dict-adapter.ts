import { configJsonOf } from "../config-fields.ts";
import type { NamedState, StateNaming } from "../weights.ts";
import type { BertConfig } from "./config.ts";

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

/** The config.json for such a file. */
export function encoderConfigJson(
  config: Omit<BertConfig, "classifier_dropout">,
  modelType: string,
  architecture: string,
): NamedState["configJson"] {
  return configJsonOf(config, modelType, architecture);
}
