import { crossEntropy, type TensorPlan } from "../../nn/index.ts";
import type { Tensor } from "../../tensor/index.ts";
import type { LabelledText, ModelOutputs } from "../task-model.ts";
import {
  EncoderWithHead,
  QuestionAnswerer,
  SequenceClassifier,
  type TextEncoderFamily,
  TokenClassifier,
} from "../text-encoder/index.ts";
import { type BertConfig, bertConfig } from "./config.ts";
import { BertModel } from "./encoder.ts";
import { MaskedWords, PretrainingHeads, tiedDecoder } from "./heads.ts";
import { encoderConfigJson, encoderNaming } from "./state-dict-adapter.ts";
import { encoderPlan, headOverWords } from "./tensor-plan.ts";

const bert: TextEncoderFamily<BertConfig> = {
  prefix: "bert",
  architecture: "Bert",
  configOf: (fields) => bertConfig(fields),
  build: (config, pooled) => new BertModel(config, { pooled }),
  dropoutOf: (config) => config.classifier_dropout ?? config.hidden_dropout_prob,
  plan: encoderPlan,
  naming: (tied) => encoderNaming("bert.", tied),
  configJson: (config, architecture) => encoderConfigJson(config, "bert", architecture),
};

type Fields = Readonly<Record<string, unknown>>;

/** What both of BERT's word heads have in common. */
abstract class BertWithWords extends EncoderWithHead<BertConfig> {
  declare readonly bert: BertModel;

  protected override get headPlan(): TensorPlan {
    return { "cls.predictions.decoder": headOverWords };
  }

  protected override get tiedNames(): readonly string[] {
    return this.config.tie_word_embeddings ? tiedDecoder : [];
  }
}

/** BERT that fills gaps. */
export class BertForMaskedLM extends BertWithWords {
  readonly cls: MaskedWords;

  /** @throws {TroupeError} `MODEL_CONFIG` */
  constructor(fields: Fields = {}) {
    super(bert, fields, "ForMaskedLM", false);
    this.cls = new MaskedWords(this.config, this.bert.embeddings.word_embeddings.weight);
  }

  /**
   * @param batch.labels - [B, T], int64: what stood there; −100 counts for nothing
   * @returns `loss`, nats a gap, or `logits` [B, T, V]
   */
  override forward({ labels, ...batch }: LabelledText): ModelOutputs {
    const answer = this.cls.forward(this.encode(batch), labels);
    return labels === undefined ? { logits: answer } : { loss: answer };
  }
}

/** What BERT's pre-training reads. */
export type PretrainingBatch = LabelledText & {
  /** [B], int64: 0 where the second text follows the first, 1 where it does not. */
  readonly nextSentenceLabel?: Tensor | undefined;
};

/** BERT that fills gaps and tells whether one text follows another: the sum of both losses. */
export class BertForPreTraining extends BertWithWords {
  readonly cls: PretrainingHeads;

  /** @throws {TroupeError} `MODEL_CONFIG` */
  constructor(fields: Fields = {}) {
    super(bert, fields, "ForPreTraining", true);
    this.cls = new PretrainingHeads(this.config, this.bert.embeddings.word_embeddings.weight);
  }

  /** @returns `loss` where both labels are given, else `predictionLogits` [B, T, V] and `seqRelationshipLogits` [B, 2] */
  override forward({ labels, nextSentenceLabel, ...batch }: PretrainingBatch): ModelOutputs {
    const hidden = this.encode(batch); // [B, T, D]
    const follows = this.cls.seq_relationship.forward(this.pool(hidden, batch)); // [B, 2]
    if (labels === undefined || nextSentenceLabel === undefined) {
      return { predictionLogits: this.cls.forward(hidden, undefined), seqRelationshipLogits: follows };
    }
    const words = this.cls.forward(hidden, labels);
    return { loss: words.add(crossEntropy(follows, nextSentenceLabel.reshape([-1]))) };
  }
}

/** BERT that tells what a row is about. */
export class BertForSequenceClassification extends SequenceClassifier<BertConfig> {
  /** @throws {TroupeError} `MODEL_CONFIG` */
  constructor(fields: Fields = {}) {
    super(bert, fields);
  }
}

/** BERT that tells what each position is. */
export class BertForTokenClassification extends TokenClassifier<BertConfig> {
  /** @throws {TroupeError} `MODEL_CONFIG` */
  constructor(fields: Fields = {}) {
    super(bert, fields);
  }
}

/** BERT that finds the answer to a question. */
export class BertForQuestionAnswering extends QuestionAnswerer<BertConfig> {
  /** @throws {TroupeError} `MODEL_CONFIG` */
  constructor(fields: Fields = {}) {
    super(bert, fields);
  }
}
