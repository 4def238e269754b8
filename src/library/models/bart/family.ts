import { defineFamily } from "../family.ts";
import { robertaTexts } from "../roberta/family.ts";
import { bartConfig } from "./config.ts";
import { BartForConditionalGeneration } from "./model.ts";

const { begin, between, end } = robertaTexts;

const bart = defineFamily({
  modelType: "bart",
  config: bartConfig,
  heads: { seq2seq_lm: BartForConditionalGeneration },
  texts: { begin, between, end },
  deltas: {
    lora: ["q_proj", "v_proj"],
    ia3: { target: ["q_proj", "v_proj", "fc2"], feedForward: ["fc2"] },
    prefix: (model) => {
      if (!(model instanceof BartForConditionalGeneration)) return undefined;
      const { decoder: stack } = model.model;
      const attentions = [...stack.layers].map(({ self_attn: attention }) => ({
        attention,
        map: attention.k_proj,
        parts: 1,
      }));
      const { max_position_embeddings: maxPositions } = model.config;
      return { stack, maskName: "decoderAttentionMask", maxPositions, attentions };
    },
    reader: (model) => {
      if (!(model instanceof BartForConditionalGeneration)) return undefined;
      const { d_model: width, tie_word_embeddings: sharesWords } = model.config;
      return { stack: model.model.encoder, width, sharesWords };
    },
  },
  formats: { fairseq: () => import("./fairseq.ts") },
});

defineFamily({
  modelType: "blenderbot",
  config: bartConfig,
  heads: bart.heads,
  deltas: { lora: ["q_proj", "v_proj"] },
  formats: { megatron: () => import("./megatron.ts") },
});
