import type { Tensor } from "../../compute/tensor/index.ts";
import type { Batch } from "./batch.ts";
import type { TokenizerSpec } from "./tokenizers/tokenizer.ts";

/** A value, or a promise of it. */
export type Awaitable<T> = T | PromiseLike<T>;

/** A model's predictions by name: one row per sample, in dim 0. */
export type Rows = Readonly<Record<string, Tensor>>;

/** Scores of predictions, by name. */
export type Scores = Readonly<Record<string, number>>;

/**
 * Facts about the data that a job may need before its model is built: labels, sizes, a vocabulary, any plain data.
 * `training` and `model` receive them.
 */
export interface DatasetFacts {
  /** The name of the data in messages. */
  readonly source: string;
  /** Upper bound of the token ids, exclusive; omitted if the data has no tokens. */
  readonly vocabSize?: number;
  /** Converts between text and tokens, if there is text. */
  readonly tokenizer?: TokenizerSpec;
}

/**
 * Identifies a dataset's samples, by name: the hash of a file, the length of a sample. Plain data: checkpoints store it, and a
 * resumed run compares it, name by name.
 */
export type Fingerprint = Readonly<Record<string, string | number | boolean>>;

/** One part of a dataset. Plain data. */
export interface Split {
  /** Samples in one epoch; Infinity if they never end. */
  readonly numSamples: number;
}

/**
 * Samples by split and position: a batch is a pure function of the three arguments, so a run resumes by knowing how many
 * samples it has consumed, and any number of ranks reads the same ones. It runs in the feeder's thread.
 */
export interface Dataset<B extends Batch = Batch, F extends DatasetFacts = DatasetFacts> {
  readonly facts: F;
  /** By name. A run trains on `train` and evaluates `validation`, or the splits that its job names. */
  readonly splits: Readonly<Record<string, Split>>;
  /**
   * @param position - first sample. For `train`, the number of samples consumed before, over all ranks and micro-batches,
   *   counted on through all epochs; for other splits, all requested samples lie within the split
   * @returns `numSamples` samples, whose tensors belong to the caller; several batches may be requested concurrently
   */
  batch(split: string, position: number, numSamples: number): Awaitable<B>;
  /** The number of tokens of a batch, for throughput; without it a run reports only samples. */
  countTokens?(batch: B): number;
  /**
   * Scores the model's predictions. Runs where the data is, so it may use what no rank has.
   * @param rows - of all samples of an evaluation, in their order, on any number of ranks; may only be read
   */
  score?(split: string, rows: Rows): Awaitable<Scores>;
  /**
   * Identifies the samples, so that a resumed run can see whether they are still the same; without it the sizes of the splits
   * are compared. It may take long, as `hashFiles` does: a new run's first steps do not wait for it.
   */
  fingerprint?(): Awaitable<Fingerprint>;
}
