import { configJsonOf } from "../config-fields.ts";
import type { NamedState, StateNaming } from "../weights.ts";
import type { GPTJConfig } from "./config.ts";

/** How GPT-J's files name its parameters. Old ones hold masks as buffers, and the output layer although it is tied. */
export function gptJNaming(withoutHead: boolean): StateNaming {
  const buffers = [/\.attn\.(bias|masked_bias|embed_positions)$/];
  return { prefix: "transformer.", ignored: withoutHead ? [...buffers, /^lm_head\.weight$/] : buffers };
}

/** The config.json that goes with such a file. */
export function gptJConfigJson(config: GPTJConfig): NamedState["configJson"] {
  return configJsonOf(config, "gptj", "GPTJForCausalLM");
}
