import type {
  Batch,
  ChatTemplate,
  Dataset,
  DatasetFacts,
  OrderedSamples,
  Rows,
  TensorsOf,
  Tokenizer,
} from "../../library/data/index.ts";
import type { Task, TaskModel } from "../../library/models/index.ts";
import type { Losses, LossWeights, Rank } from "../index.ts";

/** A parsed config.json. */
export type Fields = Readonly<Record<string, unknown>>;

/** Examples of a split; those of large files with the order in which they are read well. */
export type SplitExamples<E> = readonly E[] & { readonly indexAt?: OrderedSamples<E>["indexAt"] };

/** Examples by split: `train`, and the held-out ones such as `validation`. */
export type Examples<E> = { readonly train: SplitExamples<E> } & Readonly<Record<string, SplitExamples<E>>>;

/** Facts about a task's data, known before a model is built. Plain data. */
export interface TaskFacts extends DatasetFacts {
  /** Fields of the model's config.json that the data determines, such as the names of labels. */
  readonly fields: Fields;
  /** Samples in one epoch. */
  readonly numTrain: number;
}

/** How training avoids padding. */
export interface DynamicShapes {
  /** Number of samples that are sorted by length at a time, such as a step's batch: see `LengthBuckets`. */
  readonly window: number;
  /** Whether the window is the batch of one step, see `LengthBuckets`. */
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
  /** The model's tokenizer, for tasks with texts. */
  readonly tokenizer?: Tokenizer | undefined;
  /** The tokenizer's template, for tasks with chats. */
  readonly chatTemplate?: ChatTemplate | undefined;
  /** Samples per second of recordings, as in the model folder's preprocessor_config.json. Default: those of the first recording. */
  readonly samplingRate?: number | undefined;
  /** Length of every row in tokens, or samples of a recording; longer ones are cut. Default: the longest example. */
  readonly length?: number | undefined;
  /** Seed of each epoch's order, and of masks. */
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
  /** Default: `task`. */
  readonly name?: string;
  /**
   * Reads examples from the files in which such data is distributed.
   * @throws {TroupeError} `DATA_MISSING` if there are none; `DATA_EXAMPLE` naming file and line
   */
  read(path: string): Promise<Examples<E>>;
  /** Every batch has rows of one length, so that predictions for all of them can be joined. */
  dataset(examples: Examples<E>, options: TaskData): Dataset<B, TaskFacts>;
  /** A mean over what {@link weigh} counts. */
  loss(model: TaskModel, batch: TensorsOf<B>, rank: Rank): Losses;
  /** The counts that a batch's mean is taken over. Default: its samples. */
  weigh?(batch: B): LossWeights;
  predict(model: TaskModel, batch: TensorsOf<B>): Rows;
}

/** A task whose losses are means over something other than samples. */
export interface WeighedTask<E, B extends Batch> extends TaskDefinition<E, B> {
  weigh(batch: B): LossWeights;
}
