import type { NamedState, StateNaming } from "../weights.ts";
import type { GPT2Config } from "./config.ts";

/** Names of GPT-2's parameters in files. Old files have the causal mask as buffers, some have a tied output layer. */
export function gpt2Naming(withoutHead: boolean): StateNaming {
  const buffers = /^h\.\d+\.attn\.(bias|masked_bias)$/;
  return { prefix: "transformer.", ignored: withoutHead ? [buffers, /^lm_head\.weight$/] : [buffers] };
}

const END_OF_TEXT = 50256;

/** The config.json of a folder that `transformers` reads as this model. */
export function gpt2ConfigJson(config: GPT2Config, architecture: string): NamedState["configJson"] {
  // Without this field, readers assume GPT-2's own end-of-text token.
  const endOfText = config.vocab_size > END_OF_TEXT ? END_OF_TEXT : null;
  const tokens = { bos_token_id: endOfText, eos_token_id: endOfText };
  return { architectures: [architecture], model_type: "gpt2", ...tokens, ...config };
}
