import { below, Linear, Module, type TensorPlan } from "../../nn/index.ts";
import { arange, type Tensor } from "../../tensor/index.ts";
import { checkField, numLabels } from "../config-fields.ts";
import { rowLoss } from "../heads/index.ts";
import type { ModelOutputs, TaskModel } from "../task-model.ts";
import type { NamedState, StateNaming } from "../weights.ts";
import type { SpeechConfig } from "./config.ts";
import { SpeechModel } from "./encoder.ts";
import { checkSamples, numFrames } from "./features.ts";
import type { SpeechFamily } from "./speech-family.ts";
import type { SpeechBatch } from "./speech-for-ctc.ts";
import { speechNaming } from "./state-dict-adapter.ts";
import { speechPlan } from "./tensor-plan.ts";

// B recordings, N samples, T frames, P width of the projection, C classes.

/** A speech model that says what a recording is: a mean over its frames, and a class of that. */
export abstract class SpeechForSequenceClassification<Config extends SpeechConfig>
  extends Module
  implements TaskModel
{
  readonly config: Config;
  readonly projector: Linear;
  readonly classifier: Linear;
  readonly #family: SpeechFamily<Config>;
  readonly #stack: SpeechModel;

  /** @throws {TroupeError} `MODEL_CONFIG`, also for an adapter, beside which transformers has no such head */
  constructor(family: SpeechFamily<Config>, fields: Readonly<Record<string, unknown>>) {
    super();
    this.config = family.configOf(fields);
    const { hidden_size: width, classifier_proj_size: narrow, add_adapter } = this.config;
    checkField(this.constructor.name, "add_adapter", !add_adapter, "false beside a classifier", add_adapter);
    this.#family = family;
    this.#stack = new SpeechModel(this.config, family.positions(this.config));
    Object.assign(this, { [family.prefix]: this.#stack }); // a module's name is its property's
    this.projector = new Linear(width, narrow);
    this.classifier = new Linear(narrow, numLabels(this.config));
  }

  get stateNaming(): StateNaming {
    return speechNaming(`${this.#family.prefix}.`);
  }

  get configJson(): NamedState["configJson"] {
    return this.#family.configJson(this.config, this.constructor.name);
  }

  get tensorPlan(): TensorPlan {
    return below(this.#family.prefix, speechPlan(this.config));
  }

  /**
   * @param batch - `labels` int64 [B]
   * @returns `logits` [B, C], and with labels `loss`, a mean of cross entropies
   * @throws {TroupeError} `MODEL_INPUT` for recordings that are too short for one frame
   */
  override forward({ inputValues, attentionMask, labels }: SpeechBatch): ModelOutputs {
    checkSamples(this.constructor.name, inputValues, this.config);
    const hidden = this.projector.forward(this.#stack.forward(inputValues, attentionMask)); // [B, T, P]
    const logits = this.classifier.forward(this.#pooled(hidden, attentionMask)); // [B, C]
    if (labels === undefined) return { logits };
    return { logits, loss: rowLoss(logits, labels, "single_label_classification") };
  }

  /** The mean over the frames that are no padding: [B, T, P] → [B, P]. */
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
