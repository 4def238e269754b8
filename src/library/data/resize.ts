import { exampleError, type Picture } from "./formats/index.ts";

/** Fixed-point scale of Pillow's weights. */
const PRECISION = 2 ** 22;

/** Resampling filters: the weight of a pixel by its distance in pixels, 0 from `support` on. */
const filters = {
  bilinear: { support: 1, weight: (distance: number) => Math.max(0, 1 - distance) },
  bicubic: { support: 2, weight: cubic },
} as const;

/** The name of a filter. */
export type ResizeFilter = keyof typeof filters;

/** Sides of a picture, in pixels. */
export interface PictureSize {
  readonly height: number;
  readonly width: number;
}

/**
 * Resizes a picture like Pillow, bit for bit: when it shrinks, each pixel is a weighted mean of all pixels under it;
 * rows and columns are rounded to bytes in turn. The image processors of ViT (bilinear) and CLIP (bicubic) do the same.
 * @param pixels - [height, width, channels], row by row, 0 to 255
 * @returns [to.height, to.width, channels]
 * @throws {TroupeError} `DATA_EXAMPLE` for invalid sides, or a wrong number of pixels
 * @see Keys 1981, https://doi.org/10.1109/TASSP.1981.1163711, with a = −1/2
 */
export function resizePixels(
  pixels: Uint8Array,
  { height, width }: PictureSize,
  to: PictureSize,
  filter: ResizeFilter,
): Uint8Array {
  const channels = pixels.length / (height * width);
  for (const side of [height, width, to.height, to.width, channels])
    if (!(Number.isSafeInteger(side) && side >= 1))
      throw exampleError(
        "resizePixels",
        "sides of at least 1 pixel, and all their pixels",
        `${height} × ${width} to ${to.height} × ${to.width}, and ${pixels.length} bytes`,
      );
  const wide = width === to.width ? pixels : new Uint8Array(height * to.width * channels);
  if (wide !== pixels)
    for (let row = 0; row < height; row++)
      along(
        { from: pixels, at: row * width * channels, step: channels, size: width },
        { into: wide, at: row * to.width * channels, size: to.width },
        channels,
        filter,
      );
  if (height === to.height) return wide === pixels ? pixels.slice() : wide;
  const high = new Uint8Array(to.height * to.width * channels);
  const rowSize = to.width * channels;
  along(
    { from: wide, at: 0, step: rowSize, size: height },
    { into: high, at: 0, size: to.height },
    rowSize,
    filter,
  );
  return high;
}

/**
 * Scales the shorter side of a picture to `size` pixels, bicubic, and cuts out the central square, like CLIP's image processor.
 * @throws {TroupeError} `DATA_EXAMPLE` as {@link resizePixels}
 */
export function fitPicture({ height, width, colours }: Picture, size: number): Picture {
  const short = Math.min(height, width);
  const to = { height: Math.trunc((size * height) / short), width: Math.trunc((size * width) / short) };
  const resized = resizePixels(colours, { height, width }, to, "bicubic");
  const [top, left] = [Math.floor((to.height - size) / 2), Math.floor((to.width - size) / 2)];
  const square = new Uint8Array(size * size * 3);
  for (let row = 0; row < size; row++) {
    const begin = ((top + row) * to.width + left) * 3;
    square.set(resized.subarray(begin, begin + size * 3), row * size * 3);
  }
  return { height: size, width: size, colours: square };
}

/** Resamples one row to `size` items of `numValues` adjacent values, from items that are `step` apart. */
function along(
  { from, at, step, size }: { from: Uint8Array; at: number; step: number; size: number },
  { into, at: begin, size: newSize }: { into: Uint8Array; at: number; size: number },
  numValues: number,
  filter: ResizeFilter,
): void {
  for (const [index, { first, weights }] of weightsOf(size, newSize, filter).entries()) {
    for (let value = 0; value < numValues; value++) {
      let sum = PRECISION / 2;
      for (let tap = 0; tap < weights.length; tap++)
        sum += (weights[tap] as number) * (from[at + (first + tap) * step + value] as number);
      into[begin + index * step + value] = Math.min(255, Math.max(0, Math.floor(sum / PRECISION)));
    }
  }
}

/** The input items and weights of one output item. */
interface Taps {
  readonly first: number;
  /** Integers with a sum of {@link PRECISION}, up to rounding. */
  readonly weights: Float64Array;
}

/** Taps by sizes and filter; all rows of a picture share them. */
const known = new Map<string, readonly Taps[]>();
const MOST_KNOWN = 16;

function weightsOf(size: number, newSize: number, filter: ResizeFilter): readonly Taps[] {
  const key = `${size} ${newSize} ${filter}`;
  const found = known.get(key) ?? madeWeights(size, newSize, filter);
  if (known.size >= MOST_KNOWN && !known.has(key)) known.clear();
  known.set(key, found);
  return found;
}

function madeWeights(size: number, newSize: number, filter: ResizeFilter): Taps[] {
  const { support, weight } = filters[filter];
  const scale = size / newSize;
  const stretch = Math.max(scale, 1);
  const reach = support * stretch;
  return Array.from({ length: newSize }, (_, index) => {
    const center = (index + 0.5) * scale;
    const first = Math.max(0, Math.trunc(center - reach + 0.5));
    const end = Math.min(size, Math.trunc(center + reach + 0.5));
    const exact = Float64Array.from({ length: end - first }, (_, tap) =>
      weight(Math.abs((tap + first - center + 0.5) * (1 / stretch))),
    );
    const total = exact.reduce((sum, value) => sum + value, 0);
    const weights = exact.map((value) => {
      const share = (value / total) * PRECISION;
      return Math.trunc(share + (share < 0 ? -0.5 : 0.5));
    });
    return { first, weights };
  });
}

function cubic(distance: number): number {
  const a = -0.5;
  if (distance < 1) return ((a + 2) * distance - (a + 3)) * distance * distance + 1;
  if (distance < 2) return (((distance - 5) * distance + 8) * distance - 4) * a;
  return 0;
}
