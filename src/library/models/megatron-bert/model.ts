import {
  BertForMaskedLM,
  BertForPreTraining,
  BertForQuestionAnswering,
  BertForSequenceClassification,
  BertForTokenClassification,
} from "../bert/model.ts";
import type { TextEncoderFamily } from "../text-encoder/index.ts";
import { type MegatronBertConfig, megatronBertConfig } from "./config.ts";
import { megatronBertModel } from "./encoder.ts";
import { megatronBertConfigJson, megatronBertNaming } from "./state-dict-adapter.ts";
import { megatronBertPlan } from "./tensor-plan.ts";

type Fields = Readonly<Record<string, unknown>>;

const megatronBert: TextEncoderFamily<MegatronBertConfig> = {
  prefix: "bert",
  architecture: "MegatronBert",
  configOf: megatronBertConfig,
  build: megatronBertModel,
  dropoutOf: (config) => config.hidden_dropout_prob,
  plan: megatronBertPlan,
  naming: megatronBertNaming,
  configJson: megatronBertConfigJson,
};

/** Megatron's BERT that fills gaps. */
export class MegatronBertForMaskedLM extends BertForMaskedLM {
  /** @throws {TroupeError} `MODEL_CONFIG` */
  constructor(fields: Fields = {}) {
    super(fields, megatronBert);
  }
}

/** Megatron's BERT that fills gaps and tells whether one text follows another. */
export class MegatronBertForPreTraining extends BertForPreTraining {
  /** @throws {TroupeError} `MODEL_CONFIG` */
  constructor(fields: Fields = {}) {
    super(fields, megatronBert);
  }
}

/** Megatron's BERT that tells what a row is about. */
export class MegatronBertForSequenceClassification extends BertForSequenceClassification {
  /** @throws {TroupeError} `MODEL_CONFIG` */
  constructor(fields: Fields = {}) {
    super(fields, megatronBert);
  }
}

/** Megatron's BERT that tells what each position is. */
export class MegatronBertForTokenClassification extends BertForTokenClassification {
  /** @throws {TroupeError} `MODEL_CONFIG` */
  constructor(fields: Fields = {}) {
    super(fields, megatronBert);
  }
}

/** Megatron's BERT that finds the answer to a question. */
export class MegatronBertForQuestionAnswering extends BertForQuestionAnswering {
  /** @throws {TroupeError} `MODEL_CONFIG` */
  constructor(fields: Fields = {}) {
    super(fields, megatronBert);
  }
}
