import type { Module, TensorSplittable } from "../../compute/nn/index.ts";
import type { Tensor } from "../../compute/tensor/index.ts";
import type { NamedState } from "./weights.ts";

/** A task, as in Rapidformer's `--task`. */
export type Task =
  | "pretraining"
  | "speech_pretraining"
  | "masked_lm"
  | "causal_lm"
  | "seq2seq_lm"
  | "sequence_classification"
  | "token_classification"
  | "question_answering"
  | "image_classification"
  | "image_text"
  | "speech_recognition"
  | "audio_classification";

/** A batch, by Hugging Face's names of inputs in camel case: `inputIds`, `attentionMask`, `labels`, `pixelValues`, … */
export type ModelBatch = Readonly<Record<string, Tensor | undefined>>;

/** Outputs of a model, by Hugging Face's names in camel case: `loss`, `logits`, … */
export type ModelOutputs = Readonly<Record<string, Tensor>>;

/** A model with the head of a task, with Hugging Face's names, that tensor parallelism can split. */
export interface TaskModel extends Module, NamedState, TensorSplittable {
  /** @returns `loss`, a float32 scalar and a mean over the batch, if the batch has labels; else the task's outputs */
  forward(batch: ModelBatch): ModelOutputs;
}

/** Input of a text encoder. B rows, T positions. */
export type EncoderBatch = {
  /** [B, T], int64. */
  readonly inputIds: Tensor;
  /** [B, T], int64 or bool: 0 at padding. Default: no padding. */
  readonly attentionMask?: Tensor | undefined;
  /** [B, T], int64, 0 in the first text and 1 in the second. Default: 0. */
  readonly tokenTypeIds?: Tensor | undefined;
  /** [n + 1], int64, start of each packed sample, and end of the last. For families like BERT. */
  readonly segments?: Tensor | undefined;
};

/** A batch of texts with labels for each position, or each row. */
export type LabelledText = EncoderBatch & {
  /** int64 (float for a regression); −100 is left out of the loss. */
  readonly labels?: Tensor | undefined;
};
