import { basename } from "node:path";
import { type Tensor, tensor } from "../../compute/tensor/index.ts";
import {
  exampleError,
  type IdxArray,
  openIdx,
  type Picture,
  type PictureSize,
  resizePixels,
} from "../../library/data/index.ts";
import { accuracy, topAccuracy } from "../../library/metrics/index.ts";
import { defineTask, taskDataset } from "./define-task.ts";
import { labelIn } from "./examples/example.ts";
import { eachSplit } from "./examples/files.ts";
import { Labels } from "./examples/labels.ts";
import { pictureIn, type StoredPicture } from "./examples/pictures.ts";
import { filesAt } from "./examples/splits.ts";
import { readStored } from "./examples/stored.ts";
import { indexOfMax, numbersOf } from "./rows.ts";
import type { Fields, TaskDefinition } from "./task.ts";

/** A picture of one channel. */
export interface GreyPicture {
  /** Row-major, 0 to 255; or a function that reads them from disk. */
  readonly pixels: Uint8Array | (() => Uint8Array);
  readonly height: number;
  readonly width: number;
}

/** A picture, or how it is read when a batch needs it, with its label. */
export type LabelledPicture = (GreyPicture | Picture | StoredPicture) & { readonly label: string | number };

/** A name of one of MNIST's files. */
const idxFile = /idx|ubyte/i;

/** Pictures with a label each. */
export type LabelledPictures = {
  /** float32 [rows, channels, height, width], from −1 to 1. */
  readonly pixelValues: Tensor;
  /** int64 [rows]. */
  readonly labels: Tensor;
};

/**
 * Classifies pictures. Scores: accuracy, and accuracy among the five likeliest labels.
 *
 * Files: MNIST's four, gzipped or not, by their own names (`train-images…`, `t10k-labels…`) or with `test` for `t10k`; others, see
 * `readStored`, with `image` and `label`, or a folder for each label. Pictures of another size than the config's `image_size` are
 * resized, as in ViT's image processor, and have the config's `num_channels`, 1 or 3.
 */
export const imageClassification: TaskDefinition<LabelledPicture, LabelledPictures> = defineTask({
  task: "image_classification",

  async read(path) {
    const files = await filesAt(path);
    if (!files.some((file) => idxFile.test(basename(file))))
      return readStored(path, async (stored) => ({
        ...(await pictureIn(stored)),
        label: labelIn(stored.record, stored.place),
      }));
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
        throw exampleError(path, "idx files of images and of labels", names);
      return picturesOf(images, await openIdx(images), await openIdx(labels));
    });
  },

  dataset(examples, options) {
    const { config } = options;
    const size = sizeOf(config);
    const channels = Number(config.num_channels ?? 3);
    if (channels !== 1 && channels !== 3)
      throw exampleError("config.json", "num_channels of 1 or 3", channels);
    const known = examples.train.map(({ label }) => label);
    const labels = new Labels(known, { task: "image_classification", config });
    const idOf = ({ label }: Pick<LabelledPicture, "label">) => labels.idOf(label);
    return taskDataset(options, {
      splits: examples,
      fields: labels.fields,
      load: async (each) => ({ label: each.label, picture: "read" in each ? await each.read() : each }),
      collate: (batch): LabelledPictures => {
        const { height, width } = size ?? (batch[0] as (typeof batch)[0]).picture;
        const area = height * width;
        const values = new Float32Array(batch.length * channels * area);
        batch.forEach(({ picture }, row) => {
          const bytes = pixelsOf(picture, { height, width }, channels);
          for (let channel = 0; channel < channels; channel++)
            for (let place = 0; place < area; place++)
              values[(row * channels + channel) * area + place] =
                (bytes[place * channels + channel] as number) / 127.5 - 1;
        });
        return {
          pixelValues: tensor(values, { shape: [batch.length, channels, height, width] }),
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

/** A picture's bytes at a size, with 1 or 3 channels: [height, width, channels]. */
function pixelsOf(picture: GreyPicture | Picture, to: PictureSize, channels: number): Uint8Array {
  const isGrey = "pixels" in picture;
  const { pixels } = isGrey ? picture : { pixels: picture.colours };
  const bytes = pixels instanceof Uint8Array ? pixels : pixels();
  const isFitting = picture.height === to.height && picture.width === to.width;
  const fitting = isFitting ? bytes : resizePixels(bytes, picture, to, "bilinear");
  if (isGrey === (channels === 1)) return fitting;
  const area = to.height * to.width;
  if (isGrey) return Uint8Array.from({ length: 3 * area }, (_, place) => fitting[Math.floor(place / 3)] ?? 0);
  return Uint8Array.from({ length: area }, (_, place) => greyOf(fitting, 3 * place));
}

/** The grey of a colour, as Pillow has it. @see ITU-R BT.601 */
function greyOf(colours: Uint8Array, at: number): number {
  const [red, green, blue] = [colours[at] ?? 0, colours[at + 1] ?? 0, colours[at + 2] ?? 0];
  return (red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16;
}

function picturesOf(path: string, images: IdxArray, labels: IdxArray): LabelledPicture[] {
  const [count = 0, height = 0, width = 0] = images.shape;
  if (images.shape.length !== 3 || labels.shape.join() !== `${count}`)
    throw exampleError(path, "as many labels as images", `[${images.shape}] and [${labels.shape}]`);
  const numbers = labels.rows(0, count);
  return Array.from({ length: count }, (_, index) => ({
    pixels: () => images.rows(index, 1),
    height,
    width,
    label: numbers[index] as number,
  }));
}
