import { configJsonOf } from "../config-fields.ts";
import type { NamedState, StateNaming } from "../weights.ts";
import type { GPTJConfig } from "./config.ts";

/** Names of GPT-J's parameters in files. Old files have masks as buffers, and a tied output layer. */
export function gptJNaming(withoutHead: boolean): StateNaming {
  const buffers = [/\.attn\.(bias|masked_bias|embed_positions)$/];
  return { prefix: "transformer.", ignored: withoutHead ? [...buffers, /^lm_head\.weight$/] : buffers };
}

/** The config.json for such a file. */
export function gptJConfigJson(config: GPTJConfig): NamedState["configJson"] {
  return configJsonOf(config, "gptj", "GPTJForCausalLM");
}
