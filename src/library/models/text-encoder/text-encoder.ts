import type { Embedding, Module, TensorPlan } from "../../../compute/nn/index.ts";
import type { Tensor } from "../../../compute/tensor/index.ts";
import type { LabelNames } from "../config-fields.ts";
import type { ProblemType, Reads } from "../heads/index.ts";
import type { EncoderBatch } from "../task-model.ts";
import type { NamedState, StateNaming } from "../weights.ts";

/** A stack that reads text both ways. */
export interface TextEncoder extends Module {
  readonly embeddings: Module & { readonly word_embeddings: Embedding };
  /** What makes one vector a sample of its first position, [B, D] → [B, D]; null where no head asked for it. */
  readonly pooler: (Module & { forward(first: Tensor): Tensor }) | null;
  /** @returns hidden states [B, T, D]; where the first position alone is read there may be no others */
  forward(batch: EncoderBatch): Tensor;
  /** The first position of what forward returned, [B, D]; of each sample of a batch whose samples share a row. */
  first(hidden: Tensor, batch: EncoderBatch): Tensor;
}

/** What a head takes of an encoder. */
export interface HeadNeeds {
  readonly reads: Reads;
  /** Whether the first position is pooled for it. */
  readonly pooled: boolean;
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
  build(config: Config, needs: HeadNeeds): TextEncoder;
  /** Of classification heads. */
  dropoutOf(config: Config): number;
  plan(config: Config, reads: Reads): TensorPlan;
  /** @param tied - names of output layers that are tied to others */
  naming(tied: readonly string[]): StateNaming;
  configJson(config: Config, architecture: string): NamedState["configJson"];
}
