import type { Embedding, Module, TensorPlan } from "../../nn/index.ts";
import type { Tensor } from "../../tensor/index.ts";
import type { LabelNames } from "../config-fields.ts";
import type { ProblemType } from "../heads/index.ts";
import type { EncoderBatch } from "../task-model.ts";
import type { NamedState, StateNaming } from "../weights.ts";

/** A stack that reads text both ways. */
export interface TextEncoder extends Module {
  readonly embeddings: Module & { readonly word_embeddings: Embedding };
  /** @returns hidden states [B, T, D] */
  forward(batch: EncoderBatch): Tensor;
  /**
   * One vector for each row of hidden states: [B, T, D] → [B, D]; for each sample of a batch whose samples share a row. Only
   * where it was built to.
   */
  pool(hidden: Tensor, batch: EncoderBatch): Tensor;
}

/** What heads read of a configuration. */
export interface HeadConfig {
  readonly vocab_size: number;
  readonly hidden_size: number;
  readonly hidden_dropout_prob: number;
  readonly initializer_range: number;
  readonly layer_norm_eps: number;
  readonly tie_word_embeddings: boolean;
  readonly id2label: LabelNames;
  readonly problem_type: ProblemType;
}

/** A family of text encoders: how its files name it, and how it is built. */
export interface TextEncoderFamily<Config extends HeadConfig = HeadConfig> {
  /** The name of the encoder in a model with a head: `bert`. */
  readonly prefix: string;
  /** What the names of its architectures begin with: `Bert`. */
  readonly architecture: string;
  /** @throws {TroupeError} `MODEL_CONFIG` */
  configOf(fields: Readonly<Record<string, unknown>>): Config;
  /** @param pooled - whether a head wants one vector a row */
  build(config: Config, pooled: boolean): TextEncoder;
  /** Of classification heads. */
  dropoutOf(config: Config): number;
  plan(config: Config): TensorPlan;
  /** @param tied - names of output layers that are tied to others */
  naming(tied: readonly string[]): StateNaming;
  configJson(config: Config, architecture: string): NamedState["configJson"];
}
