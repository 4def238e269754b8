import { LayerNorm, type Linear, type Parameter } from "../../../compute/nn/index.ts";
import type { Tensor } from "../../../compute/tensor/index.ts";
import { encoderNaming } from "../bert/config.ts";
import { configJsonOf } from "../config-fields.ts";
import { linear } from "../encoder-parts.ts";
import { ofFamily } from "../of-family.ts";
import {
  MaskedLanguageModel,
  QuestionAnswerer,
  SequenceClassifier,
  type TextEncoderFamily,
  TokenClassifier,
  WordHead,
} from "../text-encoder/index.ts";
import { type AlbertConfig, albertConfig } from "./config.ts";
import { AlbertModel } from "./encoder.ts";
import { albertPlan } from "./tensor-plan.ts";

/** ALBERT's output layer for masked words; its features have the width of the embeddings. */
class AlbertPredictions extends WordHead {
  readonly LayerNorm: LayerNorm;
  readonly dense: Linear;

  constructor(config: AlbertConfig, embedding: Parameter) {
    const { hidden_size, embedding_size: width, hidden_act: activation } = config;
    super(config, width, embedding);
    this.LayerNorm = new LayerNorm(width, config.layer_norm_eps);
    this.dense = linear(hidden_size, width, config, { activation });
  }

  protected override features(hidden: Tensor): Tensor {
    return this.LayerNorm.forward(this.dense.forward(hidden)); // [B, T, E]
  }
}

const albert: TextEncoderFamily<AlbertConfig> = {
  prefix: "albert",
  architecture: "Albert",
  configOf: (fields) => albertConfig(fields),
  build: (config, { pooled }) => new AlbertModel(config, { pooled }),
  words: {
    name: "predictions",
    decoder: "predictions.decoder",
    build: (config, embedding) => new AlbertPredictions(config, embedding),
  },
  dropoutOf: (config) => config.classifier_dropout_prob,
  plan: albertPlan,
  naming: (tied) => encoderNaming("albert.", tied),
  configJson: (config, architecture) => configJsonOf(config, "albert", architecture),
};

/** ALBERT for masked language modelling. */
export class AlbertForMaskedLM extends ofFamily(MaskedLanguageModel<AlbertConfig>, albert) {}

/** ALBERT for sequence classification. */
export class AlbertForSequenceClassification extends ofFamily(SequenceClassifier<AlbertConfig>, albert) {}

/** ALBERT for token classification. */
export class AlbertForTokenClassification extends ofFamily(TokenClassifier<AlbertConfig>, albert) {}

/** ALBERT for question answering. */
export class AlbertForQuestionAnswering extends ofFamily(QuestionAnswerer<AlbertConfig>, albert) {}
