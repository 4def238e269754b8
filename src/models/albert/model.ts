import {
  LayerNorm,
  Linear,
  Module,
  Parameter,
  type TensorPlan,
  VocabularyHead,
  zeros,
} from "../../nn/index.ts";
import type { Tensor } from "../../tensor/index.ts";
import { initOf } from "../bert/encoder.ts";
import { encoderNaming } from "../bert/state-dict-adapter.ts";
import { headOverWords } from "../bert/tensor-plan.ts";
import { configJsonOf } from "../config-fields.ts";
import type { LabelledText, ModelOutputs } from "../task-model.ts";
import {
  EncoderWithHead,
  QuestionAnswerer,
  SequenceClassifier,
  type TextEncoderFamily,
  TokenClassifier,
} from "../text-encoder/index.ts";
import { type AlbertConfig, albertConfig } from "./config.ts";
import { AlbertModel } from "./encoder.ts";
import { albertPlan } from "./tensor-plan.ts";

type Fields = Readonly<Record<string, unknown>>;

const albert: TextEncoderFamily<AlbertConfig> = {
  prefix: "albert",
  architecture: "Albert",
  configOf: (fields) => albertConfig(fields),
  build: (config, pooled) => new AlbertModel(config, { pooled }),
  dropoutOf: (config) => config.classifier_dropout_prob,
  plan: albertPlan,
  naming: (tied) => encoderNaming("albert.", tied),
  configJson: (config, architecture) => configJsonOf(config, "albert", architecture),
};

/** ALBERT's masked words, as wide as the embeddings before the output layer. */
class AlbertPredictions extends Module {
  /** Of the words. Where the output layer is not tied it has a bias of its own, and this one is of no use. */
  readonly bias: Parameter;
  readonly LayerNorm: LayerNorm;
  readonly dense: Linear;
  readonly decoder: VocabularyHead;

  constructor(config: AlbertConfig, embedding: Parameter) {
    super();
    const { hidden_size, embedding_size: width, vocab_size, hidden_act: activation } = config;
    const init = initOf(config);
    this.bias = new Parameter([vocab_size], zeros);
    this.LayerNorm = new LayerNorm(width, config.layer_norm_eps);
    this.dense = new Linear(hidden_size, width, { init, biasInit: zeros, activation });
    this.decoder = new VocabularyHead(width, vocab_size, init, { bias: true });
    if (config.tie_word_embeddings) {
      this.decoder.weight = embedding;
      this.decoder.bias = this.bias;
    }
  }

  override forward(hidden: Tensor, labels: Tensor | undefined): Tensor {
    const features = this.LayerNorm.forward(this.dense.forward(hidden)); // [B, T, E]
    return this.decoder.forward(features, labels && { targets: labels });
  }
}

/** ALBERT that fills gaps. */
export class AlbertForMaskedLM extends EncoderWithHead<AlbertConfig> {
  declare readonly albert: AlbertModel;
  readonly predictions: AlbertPredictions;

  /** @throws {TroupeError} `MODEL_CONFIG` */
  constructor(fields: Fields = {}) {
    super(albert, fields, "ForMaskedLM", false);
    this.predictions = new AlbertPredictions(this.config, this.albert.embeddings.word_embeddings.weight);
  }

  /** @returns `loss`, nats a gap, where labels [B, T] are given, else `logits` [B, T, V] */
  override forward({ labels, ...batch }: LabelledText): ModelOutputs {
    const answer = this.predictions.forward(this.encode(batch), labels);
    return labels === undefined ? { logits: answer } : { loss: answer };
  }

  protected override get headPlan(): TensorPlan {
    return { "predictions.decoder": headOverWords };
  }

  protected override get tiedNames(): readonly string[] {
    return this.config.tie_word_embeddings ? ["predictions.decoder.weight", "predictions.decoder.bias"] : [];
  }
}

/** ALBERT that tells what a row is about. */
export class AlbertForSequenceClassification extends SequenceClassifier<AlbertConfig> {
  /** @throws {TroupeError} `MODEL_CONFIG` */
  constructor(fields: Fields = {}) {
    super(albert, fields);
  }
}

/** ALBERT that tells what each position is. */
export class AlbertForTokenClassification extends TokenClassifier<AlbertConfig> {
  /** @throws {TroupeError} `MODEL_CONFIG` */
  constructor(fields: Fields = {}) {
    super(albert, fields);
  }
}

/** ALBERT that finds the answer to a question. */
export class AlbertForQuestionAnswering extends QuestionAnswerer<AlbertConfig> {
  /** @throws {TroupeError} `MODEL_CONFIG` */
  constructor(fields: Fields = {}) {
    super(albert, fields);
  }
}
