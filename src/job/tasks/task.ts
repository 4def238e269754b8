import type { Batch, Dataset, DatasetFacts, Rows, TensorsOf, Tokenizer } from "../../library/data/index.ts";
import type { Task, TaskModel } from "../../library/models/index.ts";
import type { Losses, LossWeights, Rank } from "../index.ts";

/** A parsed config.json. */
export type Fields = Readonly<Record<string, unknown>>;

/** Examples by split: `train`, and the held-out ones such as `validation`. */
export type Examples<E> = { readonly train: readonly E[] } & Readonly<Record<string, readonly E[]>>;

/** What is known of a task's data before a model is built. Plain data. */
export interface TaskFacts extends DatasetFacts {
  /** Fields of the model's config.json that the data determines, such as the names of labels. */
  readonly fields: Fields;
  /** Samples in one epoch. */
  readonly numTrain: number;
}

/** How training avoids padding. */
export interface DynamicShapes {
  /** How many samples are sorted by length at a time, such as a step's batch: see `LengthBuckets`. */
  readonly window: number;
  /** Whether that is the batch of one step: see there. */
  readonly isStep?: boolean;
  /** Lengths are rounded up to a multiple of this, such as 8, or the number of ranks that share positions. */
  readonly multiple: number;
  /** Whether the samples of a batch are packed into one row, without attending to each other, instead of a row each. */
  readonly isPacked?: boolean;
}

/** How examples are turned into tensors. */
export interface TaskData {
  /** The name of the data in messages. */
  readonly source: string;
  /** The model folder's config.json: the family determines how texts are joined, the sizes how long they may be. */
  readonly config: Fields;
  /** The model's, for tasks with texts. */
  readonly tokenizer?: Tokenizer | undefined;
  /** Length of every row in tokens, or samples of a recording; longer ones are cut. Default: the longest example. */
  readonly length?: number | undefined;
  /** Orders the examples of each epoch, and hides words where a task hides some. */
  readonly seed: number;
  /** Makes training rows only as long as the longest of their batch. Default: all as long as the longest example. */
  readonly dynamicShapes?: DynamicShapes | undefined;
}

/**
 * A task: everything that a job says except the folders, the duration and the rates. `dataset` scores the predictions of
 * `predict`. It receives rows in the order of the examples, on any number of ranks, so scores are exact.
 */
export interface TaskDefinition<E, B extends Batch> {
  readonly task: Task;
  /**
   * Reads examples from the files in which such data is distributed.
   * @throws {TroupeError} `DATA_MISSING` if there are none; `DATA_EXAMPLE` naming file and line
   */
  read(path: string): Promise<Examples<E>>;
  /** Every batch has rows of one length, so that predictions for all of them can be joined. */
  dataset(examples: Examples<E>, options: TaskData): Dataset<B, TaskFacts>;
  /** A mean over what {@link weigh} counts. */
  loss(model: TaskModel, batch: TensorsOf<B>, rank: Rank): Losses;
  /** What the mean of a batch is taken over, if not its samples. */
  weigh?(batch: B): LossWeights;
  predict(model: TaskModel, batch: TensorsOf<B>): Rows;
}

/** One whose losses are means over something else than samples. */
export interface WeighedTask<E, B extends Batch> extends TaskDefinition<E, B> {
  weigh(batch: B): LossWeights;
}
