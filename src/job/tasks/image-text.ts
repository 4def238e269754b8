import { dirname, resolve } from "node:path";
import { type Tensor, tensor } from "../../compute/tensor/index.ts";
import { fitPicture, type Picture, readPng, readRecords } from "../../library/data/index.ts";
import { recallAt } from "../../library/metrics/index.ts";
import type { ModelBatch, ModelOutputs, Replicas, TaskModel } from "../../library/models/index.ts";
import { defineTask, outputsOf, taskDataset } from "./define-task.ts";
import { mapExamples, textIn } from "./examples/example.ts";
import { eachSplit, splitFiles } from "./examples/files.ts";
import { numbersOf } from "./rows.ts";
import type { Fields, TaskDefinition } from "./task.ts";
import { TextRows, type TextTensors } from "./text-rows.ts";

/** A picture, and what is said of it. */
export interface DescribedPicture extends Picture {
  readonly text: string;
}

/** Pictures with their texts, the pair of each at its own row. */
export type DescribedPictures = Omit<TextTensors, "tokenTypeIds"> & {
  /** float32 [rows, 3, height, width], each colour of the mean and deviation that CLIP was trained with. */
  readonly pixelValues: Tensor;
};

/** A model whose loss looks among the batches of all replicas. */
type AmongReplicas = TaskModel & { forward(batch: ModelBatch, replicas?: Replicas): ModelOutputs };

/** Of red, green and blue, from 0 to 1. @see Radford et al. 2021, https://arxiv.org/abs/2103.00020 */
const MEANS = [0.48145466, 0.4578275, 0.40821073];
const DEVIATIONS = [0.26862954, 0.26130258, 0.27577711];

/**
 * Which text a picture goes with: of those of a batch each picture is to be nearest to its own, and each text to its own, among
 * the micro-batches of all replicas as if they were one. Scores: the share of held-out texts whose picture is the nearest of all
 * that are held out, and of those with it among five.
 *
 * Files: `.jsonl`, `.parquet` or `.tsv` with `text` and `image`, a PNG beside the file, of any size: what the model sees is
 * the square in its middle, resized as CLIP's image processor does.
 */
export const imageText: TaskDefinition<DescribedPicture, DescribedPictures> = defineTask({
  task: "image_text",

  read: async (path) =>
    eachSplit(await splitFiles(path, /\.(jsonl|parquet|tsv)$/), async (file) =>
      Promise.all(
        (await readRecords(file)).map(async (record, index) => {
          const place = `${file}, example ${index + 1}`;
          const picture = await readPng(resolve(dirname(file), textIn(record, ["image"], place)));
          return { ...picture, text: textIn(record, ["text"], place) };
        }),
      ),
    ),

  dataset(examples, options) {
    const rows = new TextRows(options);
    const size = sizeOf(options.config);
    const encoded = mapExamples(examples, ({ text, ...picture }) => {
      const isFitting = picture.height === size && picture.width === size;
      return { row: rows.join(text), colours: (isFitting ? picture : fitPicture(picture, size)).colours };
    });
    const all = Object.values(encoded).flat();
    const length = options.length ?? rows.longest(all.map(({ row }) => row));
    return taskDataset(options, {
      splits: encoded,
      collate: (batch): DescribedPictures => {
        const texts = rows.stack(
          batch.map(({ row }) => row),
          length,
        );
        return {
          inputIds: texts.inputIds,
          attentionMask: texts.attentionMask,
          pixelValues: pixelsOf(
            batch.map(({ colours }) => colours),
            size,
          ),
        };
      },
      score: (predicted) => {
        const [texts, pictures] = [numbersOf(predicted, "texts"), numbersOf(predicted, "pictures")];
        return { recallAt1: recallAt(1, texts, pictures), recallAt5: recallAt(5, texts, pictures) };
      },
    });
  },

  // Of what is held out replicas need not have equally many: each looks among its own.
  loss: (model, batch, rank) =>
    (model as AmongReplicas).forward(batch, model.training ? rank.axes.dp : undefined).loss as Tensor,

  predict: (model, batch) => {
    const { textEmbeds, imageEmbeds } = outputsOf<"textEmbeds" | "imageEmbeds">(model, batch);
    return { texts: textEmbeds, pictures: imageEmbeds };
  },
});

/** Pixels along each side of what a family sees. */
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
