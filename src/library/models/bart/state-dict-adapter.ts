import { configJsonOf } from "../config-fields.ts";
import type { NamedState, StateNaming } from "../weights.ts";
import type { BartConfig } from "./config.ts";

/** Names of BART's parameters in files. Old files have the shared embedding once per stack. */
export function bartNaming({ tie_word_embeddings: tied }: BartConfig): StateNaming {
  const copies = /^(encoder|decoder)\.embed_tokens\.weight$/;
  return { prefix: "model.", ignored: tied ? [copies, /^lm_head\.weight$/] : [] };
}

/** The config.json for such a file. */
export function bartConfigJson(config: BartConfig): NamedState["configJson"] {
  const architecture = { bart: "Bart", blenderbot: "Blenderbot" }[config.model_type];
  return {
    ...configJsonOf(config, config.model_type, `${architecture}ForConditionalGeneration`),
    is_encoder_decoder: true,
  };
}
