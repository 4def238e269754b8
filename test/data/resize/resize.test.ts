import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { fitPicture, type ResizeFilter, resizePixels } from "../../../src/library/data/index.ts";

interface Pillow {
  readonly resized: readonly {
    readonly filter: ResizeFilter;
    readonly size: readonly [number, number];
    readonly to: readonly [number, number];
    readonly pixels: string;
    readonly result: string;
  }[];
  readonly fitted: readonly {
    readonly size: readonly [number, number];
    readonly fit: number;
    readonly pixels: string;
    readonly result: string;
  }[];
}

const pillow: Pillow = JSON.parse(readFileSync(new URL("pillow.json", import.meta.url), "utf8"));
const bytesOf = (text: string) => new Uint8Array(Buffer.from(text, "base64"));
const sides = ([height, width]: readonly [number, number]) => ({ height, width });

describe("a picture of another size is Pillow's, byte for byte", () => {
  test.each(pillow.resized)("$filter, of $size made $to", ({ filter, size, to, pixels, result }) => {
    const given = bytesOf(pixels);
    expect(resizePixels(given, sides(size), sides(to), filter)).toEqual(bytesOf(result));
    expect(given, "what was given").toEqual(bytesOf(pixels));
  });

  test.each(pillow.fitted)(
    "the square of $fit in the middle of $size, as CLIP's image processor cuts it",
    ({ size, fit, pixels, result }) => {
      const { colours, ...square } = fitPicture({ ...sides(size), colours: bytesOf(pixels) }, fit);
      expect(square).toEqual({ height: fit, width: fit });
      expect(colours).toEqual(bytesOf(result));
    },
  );

  test("sides that are none are refused, and pixels that do not fill them", () => {
    expect(() => resizePixels(new Uint8Array(12), sides([2, 2]), sides([0, 2]), "bicubic")).toThrow(
      "expected sides of at least 1 pixel, and all their pixels at resizePixels, got 2 × 2 to 0 × 2, and 12 bytes",
    );
    expect(() => resizePixels(new Uint8Array(11), sides([2, 2]), sides([3, 2]), "bicubic")).toThrow(
      "and 11 bytes",
    );
  });
});
