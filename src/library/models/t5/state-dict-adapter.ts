import { configJsonOf } from "../config-fields.ts";
import type { NamedState, StateNaming } from "../weights.ts";
import { feedForwardOf, type T5Config } from "./config.ts";

/** Names of the parameters in Hugging Face's files. Some have copies of the shared embedding, or a bias that no layer reads. */
export function t5Naming(withoutHead: boolean): StateNaming {
  const again = /^(encoder|decoder)\.embed_tokens\.weight$/;
  const unread = /^decoder\.block\.0\.layer\.1\.EncDecAttention\.relative_attention_bias\.weight$/;
  return { prefix: "", ignored: withoutHead ? [again, unread, /^lm_head\.weight$/] : [again, unread] };
}

/** The config.json with which `transformers` reads a folder as this model. */
export function t5ConfigJson(config: T5Config, architecture: string): NamedState["configJson"] {
  const { activation, isGated } = feedForwardOf(config);
  const derived = { dense_act_fn: activation, is_gated_act: isGated, is_encoder_decoder: true };
  return configJsonOf({ ...config, ...derived }, "t5", architecture);
}
