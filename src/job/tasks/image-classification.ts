import { basename } from "node:path";
import { type Tensor, tensor } from "../../compute/tensor/index.ts";
import { type IdxArray, openIdx, type PictureSize, resizePixels } from "../../library/data/index.ts";
import { accuracy, topAccuracy } from "../../library/metrics/index.ts";
import { defineTask, taskDataset } from "./define-task.ts";
import { example } from "./examples/example.ts";
import { eachSplit } from "./examples/files.ts";
import { Labels } from "./examples/labels.ts";
import { filesAt } from "./examples/splits.ts";
import { indexOfMax, numbersOf } from "./rows.ts";
import type { Fields, TaskDefinition } from "./task.ts";

/** A picture of one channel with its label. */
export interface LabelledPicture {
  /** Row-major, 0 to 255; or a function that reads them from disk. */
  readonly pixels: Uint8Array | (() => Uint8Array);
  readonly height: number;
  readonly width: number;
  readonly label: number;
}

/** Pictures with a label each. */
export type LabelledPictures = {
  /** float32 [rows, 1, height, width], from −1 to 1. */
  readonly pixelValues: Tensor;
  /** int64 [rows]. */
  readonly labels: Tensor;
};

/**
 * Classifies pictures. Scores: accuracy, and accuracy among the five likeliest labels.
 *
 * Files: MNIST's four, gzipped or not, by their own names (`train-images…`, `t10k-labels…`) or with `test` for `t10k`. Pictures of
 * another size than the config's `image_size` are resized, as in ViT's image processor.
 */
export const imageClassification: TaskDefinition<LabelledPicture, LabelledPictures> = defineTask({
  task: "image_classification",

  async read(path) {
    const files = await filesAt(path);
    const pairOf = (split: RegExp) => {
      const find = (kind: RegExp) =>
        files.find((file) => split.test(basename(file)) && kind.test(basename(file)));
      return { images: find(/images/i), labels: find(/labels/i) };
    };
    const { train, validation } = { train: pairOf(/train/i), validation: pairOf(/t10k|test/i) };
    const splits = validation.images === undefined ? { train } : { train, validation };
    return eachSplit(splits, async ({ images, labels }) => {
      const names = files.map((file) => basename(file)).join(", ");
      if (images === undefined || labels === undefined)
        throw example(path, "idx files of images and of labels", names);
      return picturesOf(images, await openIdx(images), await openIdx(labels));
    });
  },

  dataset(examples, options) {
    const { config } = options;
    const size = sizeOf(config);
    const known = examples.train.map(({ label }) => label);
    const labels = new Labels(known, { task: "image_classification", config });
    const idOf = ({ label }: LabelledPicture) => labels.idOf(label);
    return taskDataset(options, {
      splits: examples,
      fields: labels.fields,
      collate: (batch): LabelledPictures => {
        const { height, width } = size ?? (batch[0] as LabelledPicture);
        const area = height * width;
        const values = new Float32Array(batch.length * area);
        batch.forEach((picture, row) => {
          const bytes = pixelsOf(picture, { height, width });
          for (let place = 0; place < area; place++)
            values[row * area + place] = (bytes[place] as number) / 127.5 - 1;
        });
        return {
          pixelValues: tensor(values, { shape: [batch.length, 1, height, width] }),
          labels: tensor(batch.map(idOf), { dtype: "int64" }),
        };
      },
      score: (predicted, asked) => {
        const [logits, right] = [numbersOf(predicted, "logits"), asked.map(idOf)];
        return { accuracy: accuracy(logits.map(indexOfMax), right), top5: topAccuracy(logits, right, 5) };
      },
    });
  },
});

/** Size of the model's pictures; undefined, which means that of the data's, if the config has none. */
function sizeOf({ image_size: size }: Fields): PictureSize | undefined {
  if (size === undefined) return undefined;
  const [height, width] = Array.isArray(size) ? size : [size, size];
  return { height: Number(height), width: Number(width) };
}

function pixelsOf({ pixels, ...own }: LabelledPicture, to: PictureSize): Uint8Array {
  const bytes = pixels instanceof Uint8Array ? pixels : pixels();
  const isFitting = own.height === to.height && own.width === to.width;
  return isFitting ? bytes : resizePixels(bytes, own, to, "bilinear");
}

function picturesOf(path: string, images: IdxArray, labels: IdxArray): LabelledPicture[] {
  const [count = 0, height = 0, width = 0] = images.shape;
  if (images.shape.length !== 3 || labels.shape.join() !== `${count}`)
    throw example(path, "as many labels as images", `[${images.shape}] and [${labels.shape}]`);
  const numbers = labels.rows(0, count);
  return Array.from({ length: count }, (_, index) => ({
    pixels: () => images.rows(index, 1),
    height,
    width,
    label: numbers[index] as number,
  }));
}
