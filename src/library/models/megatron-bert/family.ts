import { defineFamily } from "../family.ts";
import { megatronBertConfig } from "./config.ts";
import * as megatronBert from "./model.ts";

defineFamily({
  modelType: "megatron-bert",
  config: megatronBertConfig,
  heads: {
    pretraining: megatronBert.MegatronBertForPreTraining,
    masked_lm: megatronBert.MegatronBertForMaskedLM,
    sequence_classification: megatronBert.MegatronBertForSequenceClassification,
    token_classification: megatronBert.MegatronBertForTokenClassification,
    question_answering: megatronBert.MegatronBertForQuestionAnswering,
  },
  formats: { megatron: () => import("./megatron.ts") },
});
