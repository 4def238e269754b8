import { positionsIn } from "../../../compute/nn/index.ts";
import type { Tensor } from "../../../compute/tensor/index.ts";
import { encoderNaming } from "../bert/config.ts";
import { BertModel } from "../bert/encoder.ts";
import { encoderPlan } from "../bert/tensor-plan.ts";
import { configJsonOf } from "../config-fields.ts";
import { rowLoss } from "../heads/index.ts";
import { ofFamily } from "../of-family.ts";
import type { LabelledText, ModelOutputs } from "../task-model.ts";
import {
  EncoderWithHead,
  MaskedLanguageModel,
  QuestionAnswerer,
  type TextEncoderFamily,
  TokenClassifier,
} from "../text-encoder/index.ts";
import { type RobertaConfig, robertaConfig } from "./config.ts";
import { RobertaClassificationHead, RobertaLMHead } from "./heads.ts";

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
