import {
  RobertaForMaskedLM,
  RobertaForQuestionAnswering,
  RobertaForSequenceClassification,
  RobertaForTokenClassification,
  robertaFamily,
} from "../roberta/model.ts";

type Fields = Readonly<Record<string, unknown>>;

/**
 * RoBERTa's architecture, pre-trained otherwise.
 * @see Baevski et al. 2022, https://arxiv.org/abs/2202.03555
 */
export const data2vecText = robertaFamily({
  prefix: "data2vec_text",
  architecture: "Data2VecText",
  modelType: "data2vec-text",
});

/** data2vec's text encoder that fills gaps. */
export class Data2VecTextForMaskedLM extends RobertaForMaskedLM {
  /** @throws {TroupeError} `MODEL_CONFIG` */
  constructor(fields: Fields = {}) {
    super(fields, data2vecText);
  }
}

/** data2vec's text encoder that tells what a row is about. */
export class Data2VecTextForSequenceClassification extends RobertaForSequenceClassification {
  /** @throws {TroupeError} `MODEL_CONFIG` */
  constructor(fields: Fields = {}) {
    super(fields, data2vecText);
  }
}

/** data2vec's text encoder that tells what each position is. */
export class Data2VecTextForTokenClassification extends RobertaForTokenClassification {
  /** @throws {TroupeError} `MODEL_CONFIG` */
  constructor(fields: Fields = {}) {
    super(fields, data2vecText);
  }
}

/** data2vec's text encoder that finds the answer to a question. */
export class Data2VecTextForQuestionAnswering extends RobertaForQuestionAnswering {
  /** @throws {TroupeError} `MODEL_CONFIG` */
  constructor(fields: Fields = {}) {
    super(fields, data2vecText);
  }
}
