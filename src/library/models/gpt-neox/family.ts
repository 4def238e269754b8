import { defineFamily } from "../family.ts";
import { encoderSizes } from "../size-names.ts";
import { gptNeoXConfig } from "./config.ts";
import { GPTNeoXForCausalLM } from "./model.ts";

defineFamily({
  modelType: "gpt_neox",
  config: gptNeoXConfig,
  heads: { causal_lm: GPTNeoXForCausalLM },
  sizes: { ...encoderSizes, attentionDropout: ["attention_dropout"], hiddenDropout: ["hidden_dropout"] },
  packs: true,
  deltas: {
    lora: ["query_key_value"],
    ia3: { target: ["query_key_value", "dense_4h_to_h"], feedForward: ["dense_4h_to_h"] },
  },
  formats: { neox: () => import("./neox.ts"), gguf: () => import("./gguf.ts") },
});
