import type { Tensor } from "../../compute/tensor/index.ts";
import * as data from "../../library/data/index.ts";
import type { ModelBatch, TaskModel } from "../../library/models/index.ts";
import type { Examples, Fields, TaskData, TaskDefinition, TaskFacts, WeighedTask } from "./task.ts";
import type { TextRows, TextTokens } from "./text-rows.ts";

/** Samples of a task, and how they become batches and scores. */
export interface TaskSamples<S, B extends data.Batch, L = S> {
  readonly splits: Examples<S>;
  /** Fields of the model's config.json that the data determines. Default: none. */
  readonly fields?: Fields;
  /** Other facts of the dataset. Default: none. */
  readonly facts?: Fields;
  /** Each sample's row of text, used to batch samples of similar length. Default: none. */
  readonly texts?: { readonly rows: TextRows; rowOf(sample: S): TextTokens };
  /** Reads what a sample leaves in its file until a batch needs it. Default: nothing. */
  load?(sample: S): data.Awaitable<L>;
  readonly collate: data.Collate<L, B>;
  /** Default: tokens of texts without padding; none for other samples. */
  countTokens?(batch: B): number;
  /** @param predicted - for the first samples of a split, `asked` */
  score(predicted: data.Rows, asked: readonly S[]): data.Scores;
}

/** A {@link TaskDefinition} with parts that most tasks leave out. */
type TaskParts<E, B extends data.Batch> = Omit<TaskDefinition<E, B>, "loss" | "predict"> & {
  /** Default: the model's `loss`. */
  readonly loss?: TaskDefinition<E, B>["loss"];
  /** Default: the model's `logits` for a batch without its labels. */
  readonly predict?: TaskDefinition<E, B>["predict"];
};

/** Defines a task with the usual loss and predictions. */
export function defineTask<E, B extends data.Batch>(
  parts: TaskParts<E, B> & Pick<WeighedTask<E, B>, "weigh">,
): WeighedTask<E, B>;
export function defineTask<E, B extends data.Batch>(parts: TaskParts<E, B>): TaskDefinition<E, B>;
export function defineTask<E, B extends data.Batch>(parts: TaskParts<E, B>): TaskDefinition<E, B> {
  return {
    loss: (model, batch) => outputsOf<"loss">(model, batch).loss,
    predict: (model, { labels: _, ...asked }: data.TensorsOf<B> & { readonly labels?: unknown }) => ({
      logits: outputsOf<"logits">(model, asked).logits,
    }),
    ...parts,
  };
}

/** Outputs of a model that a task reads, by name. */
export function outputsOf<Name extends string>(
  model: TaskModel,
  batch: object,
): Readonly<Record<Name, Tensor>> {
  return model.forward(batch as ModelBatch) as Readonly<Record<Name, Tensor>>;
}

/** Makes the dataset of a task's samples, which shuffles `train`. @param options - those given to the task */
export function taskDataset<S, B extends data.Batch, L = S>(
  { source, seed }: Pick<TaskData, "source" | "seed">,
  {
    splits,
    fields = {},
    facts,
    texts,
    load = (sample) => sample as unknown as L,
    collate,
    countTokens,
    score,
  }: TaskSamples<S, B, L>,
): data.Dataset<B, TaskFacts> {
  const read = Object.entries(splits).map(([name, of]) => {
    const { length, indexAt } = of;
    const at = (index: number) => load(of[index] as S);
    return [name, { length, at, ...(indexAt && { indexAt }) }] as const;
  });
  return data.sampleDataset<L, B, TaskFacts>({
    facts: { source, fields, numTrain: splits.train.length, ...facts },
    splits: Object.fromEntries(read),
    seed,
    collate,
    ...texts?.rows.bucketsOf(splits.train.map((sample) => texts.rowOf(sample))),
    ...(texts && { countTokens: countPresent }),
    ...(countTokens && { countTokens }),
    score: (split, predicted) => {
      const [first] = Object.values(predicted);
      return score(predicted, (splits[split] ?? []).slice(0, first?.shape[0] ?? 0));
    },
  });
}

const countPresent = ({ attentionMask }: data.Batch): number => (attentionMask as Tensor).sum().item();
