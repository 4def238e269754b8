import { defineFamily } from "../family.ts";
import { gptSizes } from "../gpt2/family.ts";
import { gptJConfig } from "./config.ts";
import { GPTJForCausalLM } from "./model.ts";

defineFamily({
  modelType: "gptj",
  config: gptJConfig,
  heads: { causal_lm: GPTJForCausalLM },
  sizes: gptSizes,
  packs: true,
  deltas: {
    lora: ["q_proj", "v_proj"],
    ia3: { target: ["q_proj", "v_proj", "fc_out"], feedForward: ["fc_out"] },
  },
  formats: { modelCenter: () => import("./model-center.ts") },
});
