import type { Embedding, Module, Parameter, TensorPlan } from "../../../compute/nn/index.ts";
import type { Tensor } from "../../../compute/tensor/index.ts";
import type { LabelNames, ProblemType } from "../config-fields.ts";
import type { Reads } from "../heads/index.ts";
import type { EncoderBatch } from "../task-model.ts";
import type { NamedState, StateNaming } from "../weights.ts";

/** A stack that reads text in both directions. */
export interface TextEncoder extends Module {
  readonly embeddings: Module & { readonly word_embeddings: Embedding };
  /** Pools each sample's first position, [B, D] → [B, D]; null if the head does not need it. */
  readonly pooler: (Module & { forward(first: Tensor): Tensor }) | null;
  /** @returns hidden states [B, T, D]; if only first positions are read, there may be no others */
  forward(batch: EncoderBatch): Tensor;
  /** The first position of forward's output, [B, D]; for packed samples one row each. */
  first(hidden: Tensor, batch: EncoderBatch): Tensor;
}

/** A head for words: the loss if there are labels [B, T], else logits [B, T, V]. */
export type WordPredictor = Module & { forward(hidden: Tensor, labels: Tensor | undefined): Tensor };

/** An encoder's options for its head. */
export interface HeadNeeds {
  readonly reads: Reads;
  /** Whether the first position is pooled. */
  readonly pooled: boolean;
}

/** The fields of a configuration that heads need. */
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

/** A family of text encoders: its names in files, and how to build it. */
export interface TextEncoderFamily<Config extends HeadConfig = HeadConfig> {
  /** Name of the encoder in a model with a head: `bert`. */
  readonly prefix: string;
  /** Prefix of its architectures' names: `Bert`. */
  readonly architecture: string;
  /** @throws {TroupeError} `MODEL_CONFIG` */
  configOf(fields: Readonly<Record<string, unknown>>): Config;
  build(config: Config, needs: HeadNeeds): TextEncoder;
  /** The head for masked words. */
  readonly words: {
    /** Its name in a model: `cls`. */
    readonly name: string;
    /** Name of its output layer. */
    readonly decoder: string;
    /** @param embedding - of words; the output layer may be tied to it */
    build(config: Config, embedding: Parameter): WordPredictor;
  };
  /** Dropout of classification heads. */
  dropoutOf(config: Config): number;
  plan(config: Config, reads: Reads): TensorPlan;
  /** @param tied - names of tied output layers */
  naming(tied: readonly string[]): StateNaming;
  configJson(config: Config, architecture: string): NamedState["configJson"];
}
