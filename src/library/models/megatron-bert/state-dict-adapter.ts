import { encoderConfigJson, encoderNaming } from "../bert/state-dict-adapter.ts";
import type { NamedState, StateNaming } from "../weights.ts";
import type { MegatronBertConfig } from "./config.ts";

/** Names of the parameters in Hugging Face's files: as BERT's. @param tied - names of tied output layers */
export function megatronBertNaming(tied: readonly string[]): StateNaming {
  return encoderNaming("bert.", tied);
}

/** The config.json for such a file. */
export function megatronBertConfigJson(
  { classifier_dropout: _, ...config }: MegatronBertConfig,
  architecture: string,
): NamedState["configJson"] {
  return encoderConfigJson(config, "megatron-bert", architecture);
}
