import { defineFamily } from "../family.ts";
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
    prefix: (model) => {
      if (!(model instanceof OPTForCausalLM)) return undefined;
      const attentions = [...model.model.decoder.layers].map(({ self_attn: attention }) => ({
        attention,
        map: attention.k_proj,
        parts: 1,
      }));
      return { stack: model, maskName: "attentionMask", maxPositions: model.maxPositions, attentions };
    },
  },
  formats: { modelCenter: () => import("./model-center.ts"), fairseq: () => import("./fairseq.ts") },
});
