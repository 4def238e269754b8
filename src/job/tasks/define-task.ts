import type { Tensor } from "../../compute/tensor/index.ts";
import {
  type Batch,
  type Collate,
  type Dataset,
  type Rows,
  type Scores,
  sampleDataset,
  type TensorsOf,
} from "../../library/data/index.ts";
import type { ModelBatch, TaskModel } from "../../library/models/index.ts";
import type { Examples, Fields, TaskData, TaskDefinition, TaskFacts, WeighedTask } from "./task.ts";
import type { TextRows, TextTokens } from "./text-rows.ts";

/** The samples of a task, made of its examples, and how they become batches and scores. */
export interface TaskSamples<S, B extends Batch> {
  readonly splits: Examples<S>;
  /** Fields of the model's config.json that the data determines. Default: none. */
  readonly fields?: Fields;
  /** Other facts of the dataset. Default: none. */
  readonly facts?: Fields;
  /** A sample's row of text, by which samples of about one length are brought together. Default: samples have none. */
  readonly texts?: { readonly rows: TextRows; rowOf(sample: S): TextTokens };
  readonly collate: Collate<S, B>;
  /** Default: the tokens of texts that are no padding; none of other samples. */
  countTokens?(batch: B): number;
  /** @param predicted - of the first samples of a split, `asked` */
  score(predicted: Rows, asked: readonly S[]): Scores;
}

/** A {@link TaskDefinition}, of which most tasks leave out this. */
type TaskParts<E, B extends Batch> = Omit<TaskDefinition<E, B>, "loss" | "predict"> & {
  /** Default: the model's `loss`. */
  readonly loss?: TaskDefinition<E, B>["loss"];
  /** Default: the model's `logits` of a batch without its labels. */
  readonly predict?: TaskDefinition<E, B>["predict"];
};

/** A task with the loss and the predictions that most of them have. */
export function defineTask<E, B extends Batch>(
  parts: TaskParts<E, B> & Pick<WeighedTask<E, B>, "weigh">,
): WeighedTask<E, B>;
export function defineTask<E, B extends Batch>(parts: TaskParts<E, B>): TaskDefinition<E, B>;
export function defineTask<E, B extends Batch>(parts: TaskParts<E, B>): TaskDefinition<E, B> {
  return {
    loss: (model, batch) => outputsOf<"loss">(model, batch).loss,
    predict: (model, { labels: _, ...asked }: TensorsOf<B> & { readonly labels?: unknown }) => ({
      logits: outputsOf<"logits">(model, asked).logits,
    }),
    ...parts,
  };
}

/** The outputs of a model that a task reads, by their names. */
export function outputsOf<Name extends string>(
  model: TaskModel,
  batch: object,
): Readonly<Record<Name, Tensor>> {
  return model.forward(batch as ModelBatch) as Readonly<Record<Name, Tensor>>;
}

/** The dataset of a task's samples, which shuffles `train`. @param options - those that the task was given */
export function taskDataset<S, B extends Batch>(
  { source, seed }: Pick<TaskData, "source" | "seed">,
  { splits, fields = {}, facts, texts, collate, countTokens, score }: TaskSamples<S, B>,
): Dataset<B, TaskFacts> {
  return sampleDataset({
    facts: { source, fields, numTrain: splits.train.length, ...facts },
    splits,
    seed,
    collate,
    ...texts?.rows.bucketsOf(splits.train.map((sample) => texts.rowOf(sample))),
    ...(texts && { countTokens: countPresent }),
    ...(countTokens && { countTokens }),
    score: (split, predicted) => score(predicted, (splits[split] ?? []).slice(0, numRowsOf(predicted))),
  });
}

function countPresent({ attentionMask }: Batch): number {
  return (attentionMask as Tensor).sum().item();
}

function numRowsOf(predicted: Rows): number {
  const [first] = Object.values(predicted);
  return first?.shape[0] ?? 0;
}
