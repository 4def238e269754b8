import { ofFamily } from "../of-family.ts";
import type { RobertaConfig } from "../roberta/config.ts";
import { RobertaForSequenceClassification, robertaFamily } from "../roberta/model.ts";
import { MaskedLanguageModel, QuestionAnswerer, TokenClassifier } from "../text-encoder/index.ts";

/**
 * RoBERTa's architecture with other pre-training.
 * @see Baevski et al. 2022, https://arxiv.org/abs/2202.03555
 */
export const data2vecText = robertaFamily({
  prefix: "data2vec_text",
  architecture: "Data2VecText",
  modelType: "data2vec-text",
});

/** data2vec's text encoder for masked language modelling. */
export class Data2VecTextForMaskedLM extends ofFamily(MaskedLanguageModel<RobertaConfig>, data2vecText) {}

/** data2vec's text encoder for sequence classification. */
export class Data2VecTextForSequenceClassification extends ofFamily(
  RobertaForSequenceClassification,
  data2vecText,
) {}

/** data2vec's text encoder for token classification. */
export class Data2VecTextForTokenClassification extends ofFamily(
  TokenClassifier<RobertaConfig>,
  data2vecText,
) {}

/** data2vec's text encoder for question answering. */
export class Data2VecTextForQuestionAnswering extends ofFamily(
  QuestionAnswerer<RobertaConfig>,
  data2vecText,
) {}
