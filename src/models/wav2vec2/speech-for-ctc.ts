import { below, ctcLoss, Dropout, type Linear, Module, type TensorPlan } from "../../nn/index.ts";
import type { Tensor } from "../../tensor/index.ts";
import type { ModelOutputs, TaskModel } from "../task-model.ts";
import type { NamedState, StateNaming } from "../weights.ts";
import { outputWidth, type SpeechConfig } from "./config.ts";
import { SpeechModel } from "./encoder.ts";
import { checkSamples, linear, numAdapted, numFrames } from "./features.ts";
import type { SpeechFamily } from "./speech-family.ts";
import { speechNaming } from "./state-dict-adapter.ts";
import { speechPlan } from "./tensor-plan.ts";

/** Recordings, and what is said in them. */
export type SpeechBatch = {
  /** [B, N], float: samples. */
  readonly inputValues: Tensor;
  /** [B, N], 0 where a recording is padded, at its end. */
  readonly attentionMask?: Tensor | undefined;
  /** [B, L], int64; −100 behind the end. */
  readonly labels?: Tensor | undefined;
};

/** A speech model that writes down what is said. */
export abstract class SpeechForCTC<Config extends SpeechConfig> extends Module implements TaskModel {
  readonly config: Config;
  readonly dropout: Dropout;
  readonly lm_head: Linear;
  readonly #family: SpeechFamily<Config>;
  readonly #stack: SpeechModel;

  /** @throws {TroupeError} `MODEL_CONFIG` */
  constructor(family: SpeechFamily<Config>, fields: Readonly<Record<string, unknown>>) {
    super();
    this.config = family.configOf(fields);
    this.#family = family;
    this.#stack = new SpeechModel(this.config, family.positions(this.config));
    Object.assign(this, { [family.prefix]: this.#stack }); // a module's name is its property's
    this.dropout = new Dropout(this.config.final_dropout);
    this.lm_head = linear(outputWidth(this.config), this.config.vocab_size, this.config);
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
   * @returns `loss`, by `ctc_loss_reduction`, or `logits` [B, T, V]
   * @throws {TroupeError} `MODEL_INPUT` for recordings that are too short for one frame
   */
  override forward({ inputValues, attentionMask, labels }: SpeechBatch): ModelOutputs {
    checkSamples(this.constructor.name, inputValues, this.config);
    const hidden = this.dropout.forward(this.#stack.forward(inputValues, attentionMask)); // [B, T, D]
    const logits = this.lm_head.forward(hidden);
    if (labels === undefined) return { logits };
    const { pad_token_id, ctc_loss_reduction: reduction, ctc_zero_infinity: zeroInfinity } = this.config;
    const heard = attentionMask && numFrames(attentionMask.to("int64").sum([1]), this.config);
    const inputLengths = heard && numAdapted(heard, this.config);
    return {
      loss: ctcLoss(logits, labels, { inputLengths, blank: Number(pad_token_id), reduction, zeroInfinity }),
    };
  }
}
