import type { NamedState, StateNaming } from "../weights.ts";
import type { LlamaConfig, LlamaType } from "./config.ts";

const prefixes: Readonly<Record<LlamaType, string>> = { llama: "Llama", mistral: "Mistral", qwen2: "Qwen2" };

/** Names of the parameters in Hugging Face's files. Old files have frequencies as buffers, some have a tied output layer. */
export function llamaNaming(withoutHead: boolean): StateNaming {
  const buffers = /rotary_emb\.inv_freq$/;
  return { prefix: "model.", ignored: withoutHead ? [buffers, /^lm_head\.weight$/] : [buffers] };
}

/** The config.json with which `transformers` reads a folder as this model, in the fields of its releases 4 and 5. */
export function llamaConfigJson(
  config: LlamaConfig,
  suffix: "Model" | "ForCausalLM",
): NamedState["configJson"] {
  const { rope_theta, ...scaling } = config.rope_parameters;
  return {
    architectures: [`${prefixes[config.model_type]}${suffix}`],
    ...config,
    rope_parameters: { ...config.rope_parameters },
    rope_theta,
    rope_scaling: scaling.rope_type === "default" ? null : { ...config.rope_parameters },
  };
}
