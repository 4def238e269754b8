import { crossEntropy } from "../../../compute/nn/index.ts";
import type { Tensor } from "../../../compute/tensor/index.ts";
import { configJsonOf } from "../config-fields.ts";
import { ofFamily } from "../of-family.ts";
import type { LabelledText, ModelOutputs } from "../task-model.ts";
import {
  EncoderWithHead,
  MaskedLanguageModel,
  QuestionAnswerer,
  SequenceClassifier,
  type TextEncoderFamily,
  TokenClassifier,
} from "../text-encoder/index.ts";
import { type BertConfig, bertConfig, encoderNaming } from "./config.ts";
import { BertModel } from "./encoder.ts";
import { MaskedWords, PretrainingHeads } from "./heads.ts";
import { encoderPlan } from "./tensor-plan.ts";

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

/** BERT, or a family with the same heads, for pre-training: the sum of the losses of masked words and of whether one text follows another. */
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
    return { loss: words.add(crossEntropy(follows, nextSentenceLabel.reshape([-1]))) };
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
