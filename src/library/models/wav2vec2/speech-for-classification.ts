import { constant, Linear, Parameter } from "../../../compute/nn/index.ts";
import { arange, ops, type Tensor } from "../../../compute/tensor/index.ts";
import { checkField, numLabels } from "../config-fields.ts";
import { rowLoss } from "../heads/index.ts";
import type { ModelOutputs } from "../task-model.ts";
import type { SpeechConfig } from "./config.ts";
import { numFrames } from "./features.ts";
import type { SpeechFamily } from "./speech-family.ts";
import { type SpeechBatch, SpeechWithHead } from "./speech-with-head.ts";

// B recordings, N samples, T frames, P width of the projection, C classes.

/** A speech model that classifies recordings by the mean over their frames. */
export abstract class SpeechForSequenceClassification<
  Config extends SpeechConfig,
> extends SpeechWithHead<Config> {
  /** Weights of the layers' states, before softmax, [layers + 1]; null if only the last states are read. */
  readonly layer_weights: Parameter | null;
  readonly projector: Linear;
  readonly classifier: Linear;

  /** @throws {TroupeError} `MODEL_CONFIG`, also for an adapter, with which transformers has no such head */
  constructor(fields: Readonly<Record<string, unknown>>, family: SpeechFamily<Config>) {
    super(family, fields);
    const { hidden_size: width, classifier_proj_size: narrow, add_adapter } = this.config;
    checkField(this.constructor.name, "add_adapter", !add_adapter, "false with a classifier", add_adapter);
    const numStates = this.config.num_hidden_layers + 1;
    this.layer_weights = this.config.use_weighted_layer_sum
      ? new Parameter([numStates], constant(1 / numStates))
      : null;
    this.projector = new Linear(width, narrow);
    this.classifier = new Linear(narrow, numLabels(this.config));
  }

  /**
   * @param batch - `labels` int64 [B]
   * @returns `logits` [B, C], or with labels `loss` too, the mean cross entropy
   * @throws {TroupeError} `MODEL_INPUT` for recordings that are too short for one frame
   */
  override forward(batch: SpeechBatch): ModelOutputs {
    const { attentionMask, labels } = batch;
    const hidden = this.projector.forward(this.#read(batch)); // [B, T, P]
    const logits = this.classifier.forward(this.#pooled(hidden, attentionMask)); // [B, C]
    if (labels === undefined) return { logits };
    return { logits, loss: rowLoss(logits, labels, "single_label_classification") };
  }

  /** The weighted mean of all layers' inputs and the last output, before its norm; else the last states. [B, T, D] */
  #read(batch: SpeechBatch): Tensor {
    if (this.layer_weights === null) return this.states(batch);
    const { stream = [] } = this.run(batch, { keepsStream: true });
    const shares = this.layer_weights.tensor.softmax(0).view([-1, 1, 1]); // [layers + 1, 1, 1]
    return ops.stack(stream, 1).mul(shares).sum([1]);
  }

  /** The mean over frames without padding: [B, T, P] → [B, P]. */
  #pooled(hidden: Tensor, attentionMask: Tensor | undefined): Tensor {
    if (attentionMask === undefined) return hidden.mean([1]);
    const lengths = numFrames(attentionMask.to("int64").sum([1]), this.config).unsqueeze(1); // [B, 1]
    const isPadding = arange(hidden.shape[1] ?? 0, { dtype: "int64" })
      .unsqueeze(0)
      .ge(lengths)
      .unsqueeze(-1); // [B, T, 1]
    return hidden.maskedFill(isPadding, 0).sum([1]).div(lengths.to(hidden.dtype));
  }
}
