import type { NamedState, StateNaming } from "../weights.ts";
import type { LlamaConfig, LlamaType } from "./config.ts";

const prefixes: Readonly<Record<LlamaType, string>> = { llama: "Llama", mistral: "Mistral", qwen2: "Qwen2" };

/** How Hugging Face's files name the parameters. Old ones hold frequencies as buffers, some the output layer although it is tied. */
export function llamaNaming(withoutHead: boolean): StateNaming {
  const buffers = /rotary_emb\.inv_freq$/;
  return { prefix: "model.", ignored: withoutHead ? [buffers, /^lm_head\.weight$/] : [buffers] };
}

/** The config.json of a folder that `transformers` reads as this model, by the names of its releases 4 and 5. */
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
