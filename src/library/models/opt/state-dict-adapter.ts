import { configJsonOf } from "../config-fields.ts";
import type { NamedState, StateNaming } from "../weights.ts";
import type { OPTConfig } from "./config.ts";

/** Names of OPT's parameters in files. Old files have a tied output layer. */
export function optNaming(withoutHead: boolean): StateNaming {
  return { prefix: "model.", ignored: withoutHead ? [/^lm_head\.weight$/] : [] };
}

/** The config.json for such a file. */
export function optConfigJson(config: OPTConfig): NamedState["configJson"] {
  return configJsonOf(config, "opt", "OPTForCausalLM");
}
