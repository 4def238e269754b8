import { defineFamily } from "../family.ts";
import { robertaTexts } from "../roberta/family.ts";
import * as data2vecText from "./model.ts";

defineFamily({
  modelType: "data2vec-text",
  config: data2vecText.data2vecText.configOf,
  heads: {
    masked_lm: data2vecText.Data2VecTextForMaskedLM,
    sequence_classification: data2vecText.Data2VecTextForSequenceClassification,
    token_classification: data2vecText.Data2VecTextForTokenClassification,
    question_answering: data2vecText.Data2VecTextForQuestionAnswering,
  },
  texts: robertaTexts,
  packs: true,
  deltas: { lora: ["query", "value"] },
  formats: { fairseq: () => import("./fairseq.ts") },
});
