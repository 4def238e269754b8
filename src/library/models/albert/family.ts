import { defineFamily } from "../family.ts";
import { albertConfig } from "./config.ts";
import * as albert from "./model.ts";

defineFamily({
  modelType: "albert",
  config: albertConfig,
  heads: {
    masked_lm: albert.AlbertForMaskedLM,
    sequence_classification: albert.AlbertForSequenceClassification,
    token_classification: albert.AlbertForTokenClassification,
    question_answering: albert.AlbertForQuestionAnswering,
  },
  texts: { begin: ["[CLS]"], between: ["[SEP]"], end: ["[SEP]"] },
  deltas: { lora: ["query", "value"] },
});
