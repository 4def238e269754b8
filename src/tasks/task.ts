import type { Batch, Dataset, DatasetFacts, Rows, TensorsOf, Tokenizer } from "../data/index.ts";
import type { Losses, LossWeights, Rank } from "../job/index.ts";
import type { Task, TaskModel } from "../models/index.ts";

/** A parsed config.json. */
export type Fields = Readonly<Record<string, unknown>>;

/** Examples by split: `train`, and those that are held out, `validation` among them. */
export type Examples<E> = { readonly train: readonly E[] } & Readonly<Record<string, readonly E[]>>;

/** What a task's data tells before a model is built. Plain data. */
export interface TaskFacts extends DatasetFacts {
  /** What the data decides of a model's config.json, such as the labels' names. */
  readonly fields: Fields;
  /** Samples of one epoch. */
  readonly numTrain: number;
}

/** How rows of training are no longer than they must be. */
export interface DynamicShapes {
  /** Samples that are sorted by length at a time, such as a step's batch: see `LengthBuckets`. */
  readonly window: number;
  /** Whether that is what one step reads: see there. */
  readonly isStep?: boolean;
  /** What lengths are rounded up to, such as 8, or the ranks that share positions. */
  readonly multiple: number;
  /** Whether the samples of a batch stand side by side in one row, none of which sees another, in place of a row each. */
  readonly isPacked?: boolean;
}

/** What examples are turned into tensors by. */
export interface TaskData {
  /** What the data is called in messages to people. */
  readonly source: string;
  /** The model folder's config.json: its family says how texts are joined, its sizes how long they may be. */
  readonly config: Fields;
  /** The model's, for tasks with texts. */
  readonly tokenizer?: Tokenizer | undefined;
  /** Tokens, or samples of a recording, of every row: longer ones are cut. The longest example unless told otherwise. */
  readonly length?: number | undefined;
  /** Orders the examples of each epoch, and hides words where a task hides some. */
  readonly seed: number;
  /** Rows of training as long as the longest of their batch; all as long as the longest example unless told otherwise. */
  readonly dynamicShapes?: DynamicShapes | undefined;
}

/**
 * What is learnt of what: all that a job says but of which folder, how long and how fast. `dataset` scores what `predict`
 * predicts; rows come to it in the order of the examples, however many ranks predicted them, so that a score is exact.
 */
export interface TaskDefinition<E, B extends Batch> {
  readonly task: Task;
  /**
   * Reads examples from the files that such data comes in.
   * @throws {TroupeError} `DATA_MISSING` where none of them lies there; `DATA_EXAMPLE` naming file and line
   */
  read(path: string): Promise<Examples<E>>;
  /** Every batch has rows of one length, so that what is predicted of all of them can be joined. */
  dataset(examples: Examples<E>, options: TaskData): Dataset<B, TaskFacts>;
  /** A mean, over what {@link weigh} counts. */
  loss(model: TaskModel, batch: TensorsOf<B>, rank: Rank): Losses;
  /** What counts in a batch, where that is not its samples. */
  weigh?(batch: B): LossWeights;
  predict(model: TaskModel, batch: TensorsOf<B>): Rows;
}

/** One whose losses are means over something else than samples. */
export interface WeighedTask<E, B extends Batch> extends TaskDefinition<E, B> {
  weigh(batch: B): LossWeights;
}
