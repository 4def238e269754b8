import { defineFamily, type TextForm } from "../family.ts";
import { robertaConfig } from "./config.ts";
import * as roberta from "./model.ts";

/** Rows of the byte-level vocabulary; positions start after the padding token's. */
export const robertaTexts = {
  begin: ["<s>"],
  between: ["</s>", "</s>"],
  end: ["</s>"],
  mask: "<mask>",
  maxTokens: (positions, { pad_token_id }) => positions - Number(pad_token_id ?? 1) - 1,
} as const satisfies TextForm;

defineFamily({
  modelType: "roberta",
  config: (given) => robertaConfig(given),
  heads: {
    masked_lm: roberta.RobertaForMaskedLM,
    sequence_classification: roberta.RobertaForSequenceClassification,
    token_classification: roberta.RobertaForTokenClassification,
    question_answering: roberta.RobertaForQuestionAnswering,
  },
  texts: robertaTexts,
  packs: true,
  deltas: {
    lora: ["query", "value"],
    ia3: { target: ["key", "value", "output.dense"], feedForward: ["output.dense"] },
  },
  formats: {
    modelCenter: () => import("./model-center.ts"),
    fairseq: () => import("./fairseq.ts"),
    gguf: () => import("./gguf.ts"),
  },
});
