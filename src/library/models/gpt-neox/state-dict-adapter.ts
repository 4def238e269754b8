import { configJsonOf } from "../config-fields.ts";
import type { ConfigField, NamedState, StateNaming } from "../weights.ts";
import type { GPTNeoXConfig } from "./config.ts";

/** Names of GPT-NeoX's parameters in files. Old files have masks and frequencies as buffers, and an output layer `embed_out`. */
export function gptNeoXNaming(withoutHead: boolean): StateNaming {
  const buffers = [/\.attention\.(bias|masked_bias)$/, /rotary_emb\.inv_freq$/];
  return {
    prefix: "gpt_neox.",
    ignored: withoutHead ? [...buffers, /^lm_head\.weight$/] : buffers,
    renamed: [[/^embed_out\./, "lm_head."]],
  };
}

/** The config.json for such a file, in the fields of transformers 4 and 5. */
export function gptNeoXConfigJson(
  config: GPTNeoXConfig,
  suffix: "Model" | "ForCausalLM",
): NamedState["configJson"] {
  const { rope_theta, partial_rotary_factor = 1, ...scaling } = config.rope_parameters;
  const fields = {
    ...config,
    rope_parameters: { ...config.rope_parameters } as { readonly [name: string]: ConfigField },
    rotary_pct: partial_rotary_factor,
    rotary_emb_base: rope_theta,
    rope_scaling:
      scaling.rope_type === "default" ? null : ({ ...scaling } as { readonly [name: string]: ConfigField }),
  };
  return configJsonOf(fields, "gpt_neox", `GPTNeoX${suffix}`);
}
