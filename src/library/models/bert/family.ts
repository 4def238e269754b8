import { defineFamily } from "../family.ts";
import { bertConfig } from "./config.ts";
import * as bert from "./model.ts";

defineFamily({
  modelType: "bert",
  config: (given) => bertConfig(given),
  heads: {
    pretraining: bert.BertForPreTraining,
    masked_lm: bert.BertForMaskedLM,
    sequence_classification: bert.BertForSequenceClassification,
    token_classification: bert.BertForTokenClassification,
    question_answering: bert.BertForQuestionAnswering,
  },
  texts: { begin: ["[CLS]"], between: ["[SEP]"], end: ["[SEP]"] },
  packs: true,
  deltas: {
    lora: ["query", "value"],
    ia3: { target: ["key", "value", "output.dense"], feedForward: ["output.dense"] },
  },
  formats: { modelCenter: () => import("./model-center.ts"), gguf: () => import("./gguf.ts") },
});
