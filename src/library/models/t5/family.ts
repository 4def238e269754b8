import { defineFamily } from "../family.ts";
import { t5Config } from "./config.ts";
import { T5ForConditionalGeneration } from "./model.ts";

defineFamily({
  modelType: "t5",
  config: t5Config,
  heads: { seq2seq_lm: T5ForConditionalGeneration },
  sizes: {
    numLayers: ["num_layers", "num_decoder_layers"],
    hiddenSize: ["d_model"],
    numAttentionHeads: ["num_heads"],
    headWidth: ["d_kv"],
    ffnHiddenSize: ["d_ff"],
    hiddenDropout: ["dropout_rate"],
    layernormEpsilon: ["layer_norm_epsilon"],
  },
  // Positions are relative: rows may have any length.
  texts: { begin: [], between: ["</s>"], end: ["</s>"], maxTokens: () => Number.POSITIVE_INFINITY },
  fillsSpans: true,
  deltas: {
    lora: ["q", "v"],
    ia3: { target: ["k", "v", "wo"], feedForward: ["wo"] },
    prefix: (model) => {
      if (!(model instanceof T5ForConditionalGeneration)) return undefined;
      const attentions = [...model.decoder.block].map(({ ownAttention: attention }) => ({
        attention,
        map: attention.k,
        parts: 1,
      }));
      const maxPositions = Number.POSITIVE_INFINITY;
      return { stack: model.decoder, maskName: "decoderAttentionMask", maxPositions, attentions };
    },
    reader: (model) =>
      model instanceof T5ForConditionalGeneration
        ? { stack: model.encoder, width: model.config.d_model, sharesWords: true }
        : undefined,
  },
  formats: { modelCenter: () => import("./model-center.ts"), gguf: () => import("./gguf.ts") },
});
