import { ofFamily } from "../of-family.ts";
import type { RobertaConfig } from "../roberta/config.ts";
import { RobertaForMaskedLM, RobertaForSequenceClassification, robertaFamily } from "../roberta/model.ts";
import { QuestionAnswerer, TokenClassifier } from "../text-encoder/index.ts";

/**
 * RoBERTa's architecture with other pre-training.
 * @see Baevski et al. 2022, https://arxiv.org/abs/2202.03555
 */
export const data2vecText = robertaFamily({
  prefix: "data2vec_text",
  architecture: "Data2VecText",
  modelType: "data2vec-text",
});

/** data2vec's text encoder that fills gaps. */
export class Data2VecTextForMaskedLM extends ofFamily(RobertaForMaskedLM, data2vecText) {}

/** data2vec's text encoder that tells what a row is about. */
export class Data2VecTextForSequenceClassification extends ofFamily(
  RobertaForSequenceClassification,
  data2vecText,
) {}

/** data2vec's text encoder that tells what each position is. */
export class Data2VecTextForTokenClassification extends ofFamily(
  TokenClassifier<RobertaConfig>,
  data2vecText,
) {}

/** data2vec's text encoder that finds the answer to a question. */
export class Data2VecTextForQuestionAnswering extends ofFamily(
  QuestionAnswerer<RobertaConfig>,
  data2vecText,
) {}
