import { below, Module, type TensorPlan } from "../../../compute/nn/index.ts";
import type { Tensor } from "../../../compute/tensor/index.ts";
import type { ModelOutputs, TaskModel } from "../task-model.ts";
import type { NamedState, StateNaming } from "../weights.ts";
import { type SpeechConfig, speechNaming } from "./config.ts";
import { type CarryingStates, SpeechModel, type StackOptions } from "./encoder.ts";
import { checkSamples } from "./features.ts";
import type { SpeechFamily } from "./speech-family.ts";
import { speechPlan } from "./tensor-plan.ts";

/** Recordings with labels. */
export type SpeechBatch = {
  /** [B, N], float: samples. */
  readonly inputValues: Tensor;
  /** [B, N], 0 at padding, which is at the end. */
  readonly attentionMask?: Tensor | undefined;
  /** int64: [B, L], characters, −100 at padding; or [B], classes. */
  readonly labels?: Tensor | undefined;
};

/** Common base of speech models with a head, which the subclass defines. */
export abstract class SpeechWithHead<Config extends SpeechConfig> extends Module implements TaskModel {
  readonly config: Config;
  readonly #family: SpeechFamily<Config>;
  readonly #stack: SpeechModel;

  /** @throws {TroupeError} `MODEL_CONFIG` */
  constructor(family: SpeechFamily<Config>, fields: Readonly<Record<string, unknown>>) {
    super();
    this.config = family.configOf(fields);
    this.#family = family;
    this.#stack = new SpeechModel(this.config, family.positions(this.config));
    Object.assign(this, { [family.prefix]: this.#stack }); // modules are named by their property
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

  abstract override forward(batch: SpeechBatch): ModelOutputs;

  /**
   * @returns [B, T, D]
   * @throws {TroupeError} `MODEL_INPUT` for recordings that are too short for one frame
   */
  protected states(batch: SpeechBatch): Tensor {
    return this.run(batch).hidden;
  }

  /** States, and the tensors that pass along. */
  protected run({ inputValues, attentionMask }: SpeechBatch, options: StackOptions = {}): CarryingStates {
    checkSamples(this.constructor.name, inputValues, this.config);
    return this.#stack.forward(inputValues, attentionMask, options);
  }
}
