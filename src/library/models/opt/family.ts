import { defineFamily } from "../family.ts";
import { attentionsOf } from "../prefixed.ts";
import { ProjectedAttention } from "../projected-attention.ts";
import { encoderSizes } from "../size-names.ts";
import { optConfig } from "./config.ts";
import { OPTForCausalLM } from "./model.ts";

defineFamily({
  modelType: "opt",
  config: optConfig,
  heads: { causal_lm: OPTForCausalLM },
  sizes: {
    ...encoderSizes,
    ffnHiddenSize: ["ffn_dim"],
    attentionDropout: ["attention_dropout"],
    hiddenDropout: ["dropout"],
    layernormEpsilon: [],
    initMethodStd: ["init_std"],
  },
  packs: true,
  deltas: {
    lora: ["q_proj", "v_proj"],
    ia3: { target: ["q_proj", "k_proj", "fc2"], feedForward: ["fc2"] },
    prefix: (model) =>
      model instanceof OPTForCausalLM
        ? attentionsOf(model, ProjectedAttention, ({ k_proj: map }) => ({ map, parts: 1 }))
        : undefined,
  },
  formats: { modelCenter: () => import("./model-center.ts"), fairseq: () => import("./fairseq.ts") },
});
