import { defineFamily, type SizeNames } from "../family.ts";
import { attentionsOf } from "../prefixed.ts";
import { gpt2Config } from "./config.ts";
import { GPT2Attention, GPT2LMHeadModel } from "./model.ts";
import { GPT2MoELMHeadModel } from "./moe.ts";

/** Names of fields in the older GPTs. */
export const gptSizes: SizeNames = {
  numLayers: ["n_layer"],
  hiddenSize: ["n_embd"],
  numAttentionHeads: ["n_head"],
  maxPositionEmbeddings: ["n_positions"],
  ffnHiddenSize: ["n_inner"],
  attentionDropout: ["attn_pdrop"],
  hiddenDropout: ["resid_pdrop", "embd_pdrop"],
  layernormEpsilon: ["layer_norm_epsilon"],
  initMethodStd: ["initializer_range"],
};

defineFamily({
  modelType: "gpt2",
  config: gpt2Config,
  heads: { causal_lm: GPT2LMHeadModel },
  sizes: gptSizes,
  packs: true,
  withExperts: (fields, experts) => new GPT2MoELMHeadModel(fields, experts),
  deltas: {
    lora: ["c_attn"],
    ia3: { target: ["c_attn", "mlp.c_proj"], feedForward: ["mlp.c_proj"] },
    prefix: (model) => attentionsOf(model, GPT2Attention, ({ c_attn: map }) => ({ map, parts: 3 })),
  },
  formats: {
    modelCenter: () => import("./model-center.ts"),
    megatron: () => import("./megatron.ts"),
    gguf: () => import("./gguf.ts"),
  },
});
