import * as nn from "../../../compute/nn/index.ts";
import { ops, type Tensor, tensor } from "../../../compute/tensor/index.ts";
import { numLabels } from "../config-fields.ts";
import { linear } from "../encoder-parts.ts";
import { rowLoss, spanLoss } from "../heads/index.ts";
import type { EncoderBatch, LabelledText, ModelOutputs } from "../task-model.ts";
import { EncoderWithHead } from "./encoder-with-head.ts";
import type { HeadConfig, TextEncoderFamily } from "./text-encoder.ts";

// B rows, T positions, D width, C labels.

/** Classifies rows by their pooled vectors: one label, several at once, or a number. */
export class SequenceClassifier<Config extends HeadConfig> extends EncoderWithHead<Config> {
  readonly dropout: nn.Dropout;
  readonly classifier: nn.Linear;

  /** @throws {TroupeError} `MODEL_CONFIG` */
  constructor(fields: Readonly<Record<string, unknown>>, family: TextEncoderFamily<Config>) {
    super(family, fields, "ForSequenceClassification", { reads: "first", pooled: true });
    this.dropout = new nn.Dropout(this.dropoutProbability);
    this.classifier = linear(this.config.hidden_size, numLabels(this.config), this.config);
  }

  /**
   * @param batch - a text per row, and `labels`, [B] or [B, C]: see `rowLoss`
   * @returns `loss`, or `logits` [B, C]
   */
  override forward({ labels, ...batch }: LabelledText): ModelOutputs {
    const pooled = this.pool(this.encode(batch), batch); // [B, D]
    const logits = this.classifier.forward(this.dropout.forward(pooled)); // [B, C]
    return labels === undefined ? { logits } : { loss: rowLoss(logits, labels, this.config.problem_type) };
  }
}

/** Classifies positions: names, parts of speech. */
export class TokenClassifier<Config extends HeadConfig> extends EncoderWithHead<Config> {
  readonly dropout: nn.Dropout;
  readonly classifier: nn.Linear;

  /** @throws {TroupeError} `MODEL_CONFIG` */
  constructor(fields: Readonly<Record<string, unknown>>, family: TextEncoderFamily<Config>) {
    super(family, fields, "ForTokenClassification");
    this.dropout = new nn.Dropout(this.dropoutProbability);
    this.classifier = linear(this.config.hidden_size, numLabels(this.config), this.config);
  }

  /**
   * @param batch - a text per row, and `labels`, int64 [B, T]; −100 is left out of the loss
   * @returns `loss`, a mean over the positions in it, or `logits` [B, T, C]
   */
  override forward({ labels, ...batch }: LabelledText): ModelOutputs {
    const logits = this.classifier.forward(this.dropout.forward(this.encode(batch)));
    return labels === undefined ? { logits } : { loss: nn.crossEntropy(logits, labels) };
  }
}

/** Questions with texts, and the positions of the answers' starts and ends. */
export type SpanBatch = EncoderBatch & {
  /** [B], int64, from the start of each sample; beyond its end if there is no answer. */
  readonly startPositions?: Tensor | undefined;
  readonly endPositions?: Tensor | undefined;
};

/** Finds the start and end of a question's answer. */
export class QuestionAnswerer<Config extends HeadConfig> extends EncoderWithHead<Config> {
  readonly qa_outputs: nn.Linear;

  /** @throws {TroupeError} `MODEL_CONFIG` */
  constructor(fields: Readonly<Record<string, unknown>>, family: TextEncoderFamily<Config>) {
    super(family, fields, "ForQuestionAnswering");
    this.qa_outputs = linear(this.config.hidden_size, 2, this.config);
  }

  /**
   * @returns `loss` if both positions are given, else `startLogits` and `endLogits`, [B, T] each; for packed samples [n, L], with L
   *   positions of the longest
   */
  override forward({ startPositions, endPositions, ...batch }: SpanBatch): ModelOutputs {
    const logits = this.qa_outputs.forward(this.encode(batch)); // [B, T, 2]
    const row = batch.segments && nn.packedRow(batch.segments, batch.inputIds);
    const own = row === undefined ? logits : nn.rowsOfTheirOwn(logits, row, NEVER);
    const [startLogits, endLogits] = own.unbind(2) as [Tensor, Tensor];
    if (startPositions === undefined || endPositions === undefined) return { startLogits, endLogits };
    if (row === undefined) return { loss: spanLoss(startLogits, endLogits, startPositions, endPositions) };
    const ends = tensor(nn.lengthsOf(row).slice(0, own.shape[0]), { dtype: "int64" }); // [n]
    const beyond = (positions: Tensor) =>
      ops.where(positions.lt(ends), positions, ops.fullLike(positions, own.shape[1] ?? 0));
    return { loss: spanLoss(startLogits, endLogits, beyond(startPositions), beyond(endPositions)) };
  }
}

/** Logit of positions that a shorter sample lacks: probability 0, but finite, so that products are not NaN. */
const NEVER = -30000;
