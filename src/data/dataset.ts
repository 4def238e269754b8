import type { Tensor } from "../tensor/index.ts";
import type { Batch } from "./batch.ts";
import type { TokenizerSpec } from "./tokenizers/tokenizer.ts";

/** What may be at hand or come later: decoded, read or fetched. */
export type Awaitable<T> = T | PromiseLike<T>;

/** What a model predicts, by name: of each sample a row, in dim 0. */
export type Rows = Readonly<Record<string, Tensor>>;

/** What predictions are worth, by name. */
export type Scores = Readonly<Record<string, number>>;

/**
 * What a job may need to know of its data before a model is built: labels, sizes, a vocabulary, whatever is plain data. It
 * reaches `training` and `model`.
 */
export interface DatasetFacts {
  /** What the data is called in messages to people. */
  readonly source: string;
  /** Tokens below which every input lies; left out where the data has no tokens. */
  readonly vocabSize?: number;
  /** Reads and writes the text behind the tokens, where there is one. */
  readonly tokenizer?: TokenizerSpec;
}

/**
 * What tells the samples of one dataset from those of another, by name: the hash of a file, the length of a sample. Plain data:
 * checkpoints keep it, and a run that goes on compares it, name by name.
 */
export type Fingerprint = Readonly<Record<string, string | number | boolean>>;

/** One part of a dataset. Plain data. */
export interface Split {
  /** Samples of one epoch; Infinity where they never end. */
  readonly numSamples: number;
}

/**
 * Samples by split and position: a batch is a pure function of the three arguments, so a run resumes by knowing how many
 * samples it has consumed, and any number of ranks reads the same ones. It runs in the feeder's thread.
 */
export interface Dataset<B extends Batch = Batch, F extends DatasetFacts = DatasetFacts> {
  readonly facts: F;
  /** By name. A run trains on `train` and evaluates `validation`, unless its job names others to evaluate. */
  readonly splits: Readonly<Record<string, Split>>;
  /**
   * @param position - first sample. Of `train`: samples consumed before, over all ranks and micro-batches, epoch after epoch
   *   without end; of any other split below its number of samples, as is the last one asked for
   * @returns `numSamples` samples; its tensors pass to the caller, for whom all batches that are asked for at once may be
   *   under way at once
   */
  batch(split: string, position: number, numSamples: number): Awaitable<B>;
  /** What of a batch counts as a token, for throughput; a run tells samples alone where it is left out. */
  countTokens?(batch: B): number;
  /**
   * Judges what the model predicts. Runs where the data is, so that it may read what no rank has.
   * @param rows - of all samples of an evaluation, in their order, whatever ranks predicted them; the callee's to read
   */
  score?(split: string, rows: Rows): Awaitable<Scores>;
  /**
   * What its samples are, for a run that goes on to see whether they are still the same; the sizes of the splits speak for it
   * where it is left out. It may take its time, as `hashFiles` does: a new run's first steps do not wait for it.
   */
  fingerprint?(): Awaitable<Fingerprint>;
}
