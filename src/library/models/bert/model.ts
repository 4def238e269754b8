import * as nn from "../../../compute/nn/index.ts";
import type { Tensor } from "../../../compute/tensor/index.ts";
import { configJsonOf } from "../config-fields.ts";
import { linear } from "../encoder-parts.ts";
import { ofFamily } from "../of-family.ts";
import type { LabelledText, ModelOutputs } from "../task-model.ts";
import {
  EncoderWithHead,
  type HeadConfig,
  MaskedLanguageModel,
  QuestionAnswerer,
  SequenceClassifier,
  type TextEncoderFamily,
  TokenClassifier,
  WordHead,
} from "../text-encoder/index.ts";
import { type BertConfig, bertConfig, encoderNaming } from "./config.ts";
import { BertModel } from "./encoder.ts";
import { encoderPlan } from "./tensor-plan.ts";

type WordHeadConfig = HeadConfig & { readonly hidden_act: nn.ActivationName };

class Transform extends nn.Module {
  readonly dense: nn.Linear;
  readonly LayerNorm: nn.LayerNorm;

  constructor(config: WordHeadConfig) {
    super();
    const { hidden_size: width, hidden_act: activation } = config;
    this.dense = linear(width, width, config, { activation });
    this.LayerNorm = new nn.LayerNorm(width, config.layer_norm_eps);
  }

  override forward(hidden: Tensor): Tensor {
    return this.LayerNorm.forward(this.dense.forward(hidden)); // [B, T, D]
  }
}

class Predictions extends WordHead {
  readonly transform: Transform;

  constructor(config: WordHeadConfig, embedding: nn.Parameter) {
    super(config, config.hidden_size, embedding);
    this.transform = new Transform(config);
  }

  protected override features(hidden: Tensor): Tensor {
    return this.transform.forward(hidden);
  }
}

/** BERT's head for masked words. */
class MaskedWords extends nn.Module {
  readonly predictions: Predictions;

  /** @param embedding - of words; the output layer is tied to it */
  constructor(config: WordHeadConfig, embedding: nn.Parameter) {
    super();
    this.predictions = new Predictions(config, embedding);
  }

  /** @returns the loss if there are labels [B, T], else logits [B, T, V] */
  override forward(hidden: Tensor, labels: Tensor | undefined): Tensor {
    return this.predictions.forward(hidden, labels);
  }
}

/** Heads for masked words, and for whether the second text follows the first. */
class PretrainingHeads extends MaskedWords {
  readonly seq_relationship: nn.Linear;

  constructor(config: WordHeadConfig, embedding: nn.Parameter) {
    super(config, embedding);
    this.seq_relationship = linear(config.hidden_size, 2, config);
  }
}

/** BERT's head for masked words. */
export const bertWords: TextEncoderFamily<BertConfig>["words"] = {
  name: "cls",
  decoder: "cls.predictions.decoder",
  build: (config, embedding) => new MaskedWords(config, embedding),
};

const bert: TextEncoderFamily<BertConfig> = {
  prefix: "bert",
  architecture: "Bert",
  configOf: (fields) => bertConfig(fields),
  build: (config, needs) => new BertModel(config, needs),
  words: bertWords,
  dropoutOf: (config) => config.classifier_dropout ?? config.hidden_dropout_prob,
  plan: encoderPlan,
  naming: (tied) => encoderNaming("bert.", tied),
  configJson: (config, architecture) => configJsonOf(config, "bert", architecture),
};

type Fields = Readonly<Record<string, unknown>>;

/** BERT for masked language modelling. */
export class BertForMaskedLM extends ofFamily(MaskedLanguageModel<BertConfig>, bert) {}

/** Input of BERT's pre-training. */
export type PretrainingBatch = LabelledText & {
  /** [B], int64: 0 where the second text follows the first, 1 where it does not. */
  readonly nextSentenceLabel?: Tensor | undefined;
};

/**
 * BERT, or a family with the same heads, for pre-training: the sum of the losses of masked words and of whether one text follows
 * another.
 */
export class BertForPreTraining extends EncoderWithHead<BertConfig> {
  readonly cls: PretrainingHeads;

  /** @throws {TroupeError} `MODEL_CONFIG` */
  constructor(fields: Fields = {}, family: TextEncoderFamily<BertConfig> = bert) {
    super(family, fields, "ForPreTraining", { reads: "all", pooled: true });
    this.cls = new PretrainingHeads(this.config, this.wordEmbedding);
  }

  /** @returns `loss` if both labels are given, else `predictionLogits` [B, T, V] and `seqRelationshipLogits` [B, 2] */
  override forward({ labels, nextSentenceLabel, ...batch }: PretrainingBatch): ModelOutputs {
    const hidden = this.encode(batch); // [B, T, D]
    const follows = this.cls.seq_relationship.forward(this.pool(hidden, batch)); // [B, 2]
    if (labels === undefined || nextSentenceLabel === undefined)
      return { predictionLogits: this.cls.forward(hidden, undefined), seqRelationshipLogits: follows };
    const words = this.cls.forward(hidden, labels);
    return { loss: words.add(nn.crossEntropy(follows, nextSentenceLabel.reshape([-1]))) };
  }

  protected override get decoderName(): string {
    return bertWords.decoder;
  }
}

/** BERT for sequence classification. */
export class BertForSequenceClassification extends ofFamily(SequenceClassifier<BertConfig>, bert) {}

/** BERT for token classification. */
export class BertForTokenClassification extends ofFamily(TokenClassifier<BertConfig>, bert) {}

/** BERT for question answering. */
export class BertForQuestionAnswering extends ofFamily(QuestionAnswerer<BertConfig>, bert) {}
