import {
  Dropout,
  LayerNorm,
  type Linear,
  Module,
  type Parameter,
  positionsIn,
} from "../../../compute/nn/index.ts";
import type { Tensor } from "../../../compute/tensor/index.ts";
import { encoderNaming } from "../bert/config.ts";
import { BertModel } from "../bert/encoder.ts";
import { encoderPlan } from "../bert/tensor-plan.ts";
import { configJsonOf, numLabels } from "../config-fields.ts";
import { linear } from "../encoder-parts.ts";
import { rowLoss } from "../heads/index.ts";
import { ofFamily } from "../of-family.ts";
import type { LabelledText, ModelOutputs } from "../task-model.ts";
import {
  EncoderWithHead,
  type HeadConfig,
  MaskedLanguageModel,
  QuestionAnswerer,
  type TextEncoderFamily,
  TokenClassifier,
  WordHead,
} from "../text-encoder/index.ts";
import { type RobertaConfig, robertaConfig } from "./config.ts";

/** RoBERTa's head for masked words. */
class RobertaLMHead extends WordHead {
  readonly dense: Linear;
  readonly layer_norm: LayerNorm;

  /** @param embedding - of words; the output layer is tied to it */
  constructor(config: HeadConfig, embedding: Parameter) {
    const { hidden_size: width, layer_norm_eps } = config;
    super(config, width, embedding);
    this.dense = linear(width, width, config, { activation: "gelu" });
    this.layer_norm = new LayerNorm(width, layer_norm_eps);
  }

  protected override features(hidden: Tensor): Tensor {
    return this.layer_norm.forward(this.dense.forward(hidden)); // [B, T, D]
  }
}

/** RoBERTa's classifier of rows, with its own layer instead of a pooler. */
class RobertaClassificationHead extends Module {
  readonly dense: Linear;
  readonly dropout: Dropout;
  readonly out_proj: Linear;

  constructor(config: HeadConfig, dropout: number) {
    super();
    const { hidden_size: width } = config;
    this.dense = linear(width, width, config, { activation: "tanh" });
    this.dropout = new Dropout(dropout);
    this.out_proj = linear(width, numLabels(config), config);
  }

  /** @param first - [B, D] @returns [B, C] */
  override forward(first: Tensor): Tensor {
    const features = this.dense.forward(this.dropout.forward(first)); // [B, D]
    return this.out_proj.forward(this.dropout.forward(features));
  }
}

/** Names of a family with RoBERTa's architecture. */
interface RobertaNames {
  readonly prefix: string;
  readonly architecture: string;
  readonly modelType: string;
}

/** Defines RoBERTa, or an equal family with another name. */
export function robertaFamily({
  prefix,
  architecture,
  modelType,
}: RobertaNames): TextEncoderFamily<RobertaConfig> {
  return {
    prefix,
    architecture,
    configOf: (fields) => robertaConfig(fields, { where: `${architecture}Config`, modelType }),
    build: (config, needs) =>
      new BertModel(config, {
        ...needs,
        paddedPositions: config.pad_token_id,
        positionsOf: (inputIds, segments) =>
          segments === undefined
            ? positionsBehind(inputIds, config.pad_token_id)
            : positionsIn(segments).add(config.pad_token_id + 1),
      }),
    words: {
      name: "lm_head",
      decoder: "lm_head.decoder",
      build: (config, embedding) => new RobertaLMHead(config, embedding),
    },
    dropoutOf: (config) => config.classifier_dropout ?? config.hidden_dropout_prob,
    plan: encoderPlan,
    naming: (tied) => encoderNaming(`${prefix}.`, tied),
    configJson: (config, name) => configJsonOf(config, modelType, name),
  };
}

/**
 * Positions of tokens without padding, from the padding token's id + 1; padding has the position of that id.
 * @see Liu et al. 2019, https://arxiv.org/abs/1907.11692, as in fairseq
 * @param inputIds - [B, T], int64 @returns [B, T], int64
 */
function positionsBehind(inputIds: Tensor, padding: number): Tensor {
  const present = inputIds.ne(padding).to("int64");
  return present.cumsum(1).mul(present).add(padding);
}

type Fields = Readonly<Record<string, unknown>>;

const roberta = robertaFamily({ prefix: "roberta", architecture: "Roberta", modelType: "roberta" });

/** RoBERTa for masked language modelling. */
export class RobertaForMaskedLM extends ofFamily(MaskedLanguageModel<RobertaConfig>, roberta) {}

/** RoBERTa for sequence classification. */
export class RobertaForSequenceClassification extends EncoderWithHead<RobertaConfig> {
  readonly classifier: RobertaClassificationHead;

  /** @throws {TroupeError} `MODEL_CONFIG` */
  constructor(fields: Fields = {}, family: TextEncoderFamily<RobertaConfig> = roberta) {
    super(family, fields, "ForSequenceClassification", { reads: "first", pooled: false });
    this.classifier = new RobertaClassificationHead(this.config, this.dropoutProbability);
  }

  /** @returns `loss` if there are labels (see `rowLoss`), else `logits` [B, C] */
  override forward({ labels, ...batch }: LabelledText): ModelOutputs {
    const logits = this.classifier.forward(this.first(this.encode(batch), batch)); // [B, C]
    return labels === undefined ? { logits } : { loss: rowLoss(logits, labels, this.config.problem_type) };
  }
}

/** RoBERTa for token classification. */
export class RobertaForTokenClassification extends ofFamily(TokenClassifier<RobertaConfig>, roberta) {}

/** RoBERTa for question answering. */
export class RobertaForQuestionAnswering extends ofFamily(QuestionAnswerer<RobertaConfig>, roberta) {}
