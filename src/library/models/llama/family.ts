import { defineFamily } from "../family.ts";
import { attentionsOf } from "../prefixed.ts";
import { encoderSizes } from "../size-names.ts";
import { llamaConfig } from "./config.ts";
import { LlamaAttention, LlamaForCausalLM } from "./model.ts";

const gguf = () => import("./gguf.ts");

const llama = defineFamily({
  modelType: "llama",
  config: llamaConfig,
  heads: { causal_lm: LlamaForCausalLM },
  sizes: {
    ...encoderSizes,
    attentionDropout: ["attention_dropout"],
    hiddenDropout: [],
    layernormEpsilon: ["rms_norm_eps"],
  },
  packs: true,
  deltas: {
    lora: ["q_proj", "v_proj"],
    ia3: { target: ["k_proj", "v_proj", "down_proj"], feedForward: ["down_proj"] },
    prefix: (model) => attentionsOf(model, LlamaAttention, ({ k_proj: map }) => ({ map, parts: 1 })),
  },
  formats: { modelCenter: () => import("./model-center.ts"), gguf },
});

const mistral = { ...llama, formats: { gguf } };
defineFamily({ ...mistral, modelType: "mistral" });

const ia3 = { target: ["q_proj", "v_proj", "down_proj"], feedForward: ["down_proj"] };
defineFamily({ ...mistral, modelType: "qwen2", deltas: { ...mistral.deltas, ia3 } });
