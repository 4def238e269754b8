import { encoderNaming } from "../bert/config.ts";
import { BertForPreTraining, bertWords } from "../bert/model.ts";
import { configJsonOf } from "../config-fields.ts";
import { ofFamily } from "../of-family.ts";
import {
  MaskedLanguageModel,
  QuestionAnswerer,
  SequenceClassifier,
  type TextEncoderFamily,
  TokenClassifier,
} from "../text-encoder/index.ts";
import { type MegatronBertConfig, megatronBertConfig } from "./config.ts";
import { megatronBertModel } from "./encoder.ts";
import { megatronBertPlan } from "./tensor-plan.ts";

const megatronBert: TextEncoderFamily<MegatronBertConfig> = {
  prefix: "bert",
  architecture: "MegatronBert",
  configOf: megatronBertConfig,
  build: megatronBertModel,
  words: bertWords,
  dropoutOf: (config) => config.hidden_dropout_prob,
  plan: megatronBertPlan,
  naming: (tied) => encoderNaming("bert.", tied),
  configJson: ({ classifier_dropout: _, ...config }, architecture) =>
    configJsonOf(config, "megatron-bert", architecture),
};

/** Megatron's BERT for masked language modelling. */
export class MegatronBertForMaskedLM extends ofFamily(
  MaskedLanguageModel<MegatronBertConfig>,
  megatronBert,
) {}

/** Megatron's BERT for pre-training: masked words, and whether one text follows another. */
export class MegatronBertForPreTraining extends ofFamily(BertForPreTraining, megatronBert) {}

/** Megatron's BERT for sequence classification. */
export class MegatronBertForSequenceClassification extends ofFamily(
  SequenceClassifier<MegatronBertConfig>,
  megatronBert,
) {}

/** Megatron's BERT for token classification. */
export class MegatronBertForTokenClassification extends ofFamily(
  TokenClassifier<MegatronBertConfig>,
  megatronBert,
) {}

/** Megatron's BERT for question answering. */
export class MegatronBertForQuestionAnswering extends ofFamily(
  QuestionAnswerer<MegatronBertConfig>,
  megatronBert,
) {}
