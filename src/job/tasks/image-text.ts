import { type Tensor, tensor } from "../../compute/tensor/index.ts";
import { fitPicture, type Picture } from "../../library/data/index.ts";
import { recallAt } from "../../library/metrics/index.ts";
import type { ModelBatch, ModelOutputs, Replicas, TaskModel } from "../../library/models/index.ts";
import { defineTask, outputsOf, taskDataset } from "./define-task.ts";
import { mapExamples, textIn } from "./examples/example.ts";
import { pictureIn, type StoredPicture } from "./examples/pictures.ts";
import { readStored } from "./examples/stored.ts";
import { numbersOf } from "./rows.ts";
import type { Fields, TaskDefinition } from "./task.ts";
import { TextRows, type TextTensors } from "./text-rows.ts";

/** A picture, or how it is read when a batch needs it, with its description. */
export type DescribedPicture = (Picture | StoredPicture) & { readonly text: string };

/** Columns of descriptions: of tars, and on Hugging Face's hub. */
const TEXTS = ["text", "txt", "caption", "sentence"];

/** Pictures and texts; pairs have the same row. */
export type DescribedPictures = Omit<TextTensors, "tokenTypeIds"> & {
  /** float32 [rows, 3, height, width], each colour normalized with CLIP's mean and deviation. */
  readonly pixelValues: Tensor;
};

/** A model whose loss compares the batches of all replicas. */
type AmongReplicas = TaskModel & { forward(batch: ModelBatch, replicas?: Replicas): ModelOutputs };

/** Means of red, green and blue, from 0 to 1. @see Radford et al. 2021, https://arxiv.org/abs/2103.00020 */
const MEANS = [0.48145466, 0.4578275, 0.40821073];
const DEVIATIONS = [0.26862954, 0.26130258, 0.27577711];

/**
 * Matches pictures and texts: each picture should be nearest to its own text and each text to its own picture, among the
 * micro-batches of all replicas. Scores: the share of held-out texts whose picture is the nearest, or among the five nearest, of all
 * held-out pictures.
 *
 * Files: see `readStored`, with `text` or `caption`, and `image`, which is a picture of any size or its path relative to the file. Its
 * central square is resized, as in CLIP's image processor.
 */
export const imageText: TaskDefinition<DescribedPicture, DescribedPictures> = defineTask({
  task: "image_text",

  read: (path) =>
    readStored(path, async (stored) => ({
      ...(await pictureIn(stored)),
      text: textIn(stored.record, TEXTS, stored.place),
    })),

  dataset(examples, options) {
    const rows = new TextRows(options);
    const size = sizeOf(options.config);
    const fit = (picture: Picture) => {
      const isFitting = picture.height === size && picture.width === size;
      return (isFitting ? picture : fitPicture(picture, size)).colours;
    };
    const encoded = mapExamples(examples, ({ text, ...picture }) => {
      const colours = "read" in picture ? async () => fit(await picture.read()) : fit(picture);
      return { row: rows.join(text), colours };
    });
    const all = Object.values(encoded).flat();
    const length = options.length ?? rows.longest(all.map(({ row }) => row));
    return taskDataset(options, {
      splits: encoded,
      load: async ({ row, colours }) => ({
        row,
        colours: colours instanceof Uint8Array ? colours : await colours(),
      }),
      collate: (batch): DescribedPictures => {
        const texts = batch.map(({ row }) => row);
        const { inputIds, attentionMask } = rows.stack(texts, length);
        const colours = batch.map((each) => each.colours);
        return { inputIds, attentionMask, pixelValues: pixelsOf(colours, size) };
      },
      score: (predicted) => {
        const [texts, pictures] = [numbersOf(predicted, "texts"), numbersOf(predicted, "pictures")];
        return { recallAt1: recallAt(1, texts, pictures), recallAt5: recallAt(5, texts, pictures) };
      },
    });
  },

  // Replicas may have different numbers of held-out samples: each compares only its own.
  loss: (model, batch, rank) =>
    (model as AmongReplicas).forward(batch, model.training ? rank.axes.dp : undefined).loss as Tensor,

  predict: (model, batch) => {
    const { textEmbeds, imageEmbeds } = outputsOf<"textEmbeds" | "imageEmbeds">(model, batch);
    return { texts: textEmbeds, pictures: imageEmbeds };
  },
});

/** Size of a family's pictures, in pixels along each side. */
function sizeOf({ vision_config, image_size }: Fields): number {
  const { image_size: ofVision } = (vision_config ?? {}) as Fields;
  return Number(ofVision ?? image_size ?? 224);
}

function pixelsOf(pictures: readonly Uint8Array[], size: number): Tensor {
  const area = size * size;
  const values = new Float32Array(pictures.length * 3 * area);
  for (const [row, colours] of pictures.entries())
    for (let colour = 0; colour < 3; colour++)
      for (let pixel = 0; pixel < area; pixel++)
        values[(row * 3 + colour) * area + pixel] =
          ((colours[3 * pixel + colour] ?? 0) / 255 - (MEANS[colour] ?? 0)) / (DEVIATIONS[colour] ?? 1);
  return tensor(values, { shape: [pictures.length, 3, size, size] });
}
