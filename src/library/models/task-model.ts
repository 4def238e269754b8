import type { Module, TensorSplittable } from "../../compute/nn/index.ts";
import type { Tensor } from "../../compute/tensor/index.ts";
import type { NamedState } from "./weights.ts";

/** What a model is trained for, in the words of Rapidformer's `--task`. */
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

/** A batch by the names of Hugging Face's inputs in camel case: `inputIds`, `attentionMask`, `labels`, `pixelValues`, … */
export type ModelBatch = Readonly<Record<string, Tensor | undefined>>;

/** What a model answers, by the names of Hugging Face's outputs in camel case: `loss`, `logits`, … */
export type ModelOutputs = Readonly<Record<string, Tensor>>;

/** A model with the head of a task, its names those of Hugging Face, splittable by tensor parallelism. */
export interface TaskModel extends Module, NamedState, TensorSplittable {
  /** @returns `loss`, a float32 scalar and a mean over the batch, where the batch has labels; else the task's outputs */
  forward(batch: ModelBatch): ModelOutputs;
}

/** What a text encoder reads. B rows, T positions. */
export type EncoderBatch = {
  /** [B, T], int64. */
  readonly inputIds: Tensor;
  /** [B, T], int64 or bool: 0 where a row is padded. All positions count where it is left out. */
  readonly attentionMask?: Tensor | undefined;
  /** [B, T], int64, which of two texts a position belongs to. Default: the first. */
  readonly tokenTypeIds?: Tensor | undefined;
  /** [n + 1], int64, where the samples begin that share the one row, and where the last ends. Families of BERT. */
  readonly segments?: Tensor | undefined;
};

/** The same with what each position, or each row, is asked for. */
export type LabelledText = EncoderBatch & {
  /** int64 (float for a regression); what counts for nothing is −100. */
  readonly labels?: Tensor | undefined;
};
