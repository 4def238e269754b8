import { inflateSync } from "node:zlib";
import { maxFileBytes, readBounded } from "../../../errors/untrusted/index.ts";
import { exampleError, unreadable } from "./refusal.ts";

/** A picture with three colour channels. */
export interface Picture {
  readonly height: number;
  readonly width: number;
  /** Red, green and blue of each pixel, row by row, 0 to 255. */
  readonly colours: Uint8Array;
}

/** 4096 by 4096: a larger picture takes a second and 200 MB even if it is empty. */
const MAX_PIXELS = 1 << 24;
const SIGNATURE = "89504e470d0a1a0a";
/** Values per pixel, by PNG's colour types: grey, RGB, palette, grey and alpha, RGBA. */
const numChannelsOf: Readonly<Record<number, number>> = { 0: 1, 2: 3, 3: 1, 4: 2, 6: 4 };

/**
 * Reads a PNG with 8 bits per value, not interlaced: grey, colour or a palette. Transparent pixels are drawn on white.
 * @throws {TroupeError} `DATA_UNREADABLE`, `DATA_EXAMPLE` for another kind or a truncated file
 * @see https://www.w3.org/TR/png-3
 */
export async function readPng(path: string): Promise<Picture> {
  const bytes = await readBounded(path, maxFileBytes.picture).catch((cause: unknown) => {
    throw unreadable(path, cause);
  });
  return decodePng(bytes, path);
}

/** Decodes the bytes of a PNG, as {@link readPng} reads it. @param path - names it in errors */
export function decodePng(bytes: Buffer, path: string): Picture {
  const chunks = chunksOf(path, bytes);
  const header = chunks.get("IHDR");
  const data = chunks.get("IDAT");
  if (header?.length !== 13 || data === undefined)
    throw exampleError(path, "a PNG's header and data", [...chunks.keys()].join(", ") || "neither");
  const [width, height, numBits, colourType] = [
    header.readUInt32BE(0),
    header.readUInt32BE(4),
    header[8],
    header[9] ?? -1,
  ];
  const numChannels = numChannelsOf[colourType];
  if (numBits !== 8 || numChannels === undefined || header[12] !== 0)
    throw exampleError(path, "a PNG of 8 bits, not interlaced", `${numBits} bits, colour type ${colourType}`);
  if (width * height > MAX_PIXELS)
    throw exampleError(path, `a picture of at most ${MAX_PIXELS} pixels`, `${width} x ${height}`);
  const sizeBytes = height * (width * numChannels + 1);
  const values = unfiltered(path, inflated(path, data, sizeBytes), height, width * numChannels, numChannels);
  const alphas = chunks.get("tRNS");
  if (alphas !== undefined && colourType !== 3)
    throw exampleError(
      path,
      "a PNG whose transparency is a channel or the palette's",
      "one transparent colour",
    );
  const palette = chunks.get("PLTE") ?? Buffer.alloc(0);
  const colours = new Uint8Array(3 * height * width);
  for (let pixel = 0; pixel < height * width; pixel++) {
    const at = pixel * numChannels;
    const entry = values[at] ?? 0;
    const alpha =
      colourType === 3
        ? (alphas?.[entry] ?? 255)
        : colourType >= 4
          ? (values[at + numChannels - 1] ?? 255)
          : 255;
    for (let colour = 0; colour < 3; colour++) {
      const value =
        colourType === 3
          ? (palette[3 * entry + colour] ?? 0)
          : (values[at + (numChannels >= 3 ? colour : 0)] ?? 0);
      colours[3 * pixel + colour] = Math.round((value * alpha + 255 * (255 - alpha)) / 255);
    }
  }
  return { height, width, colours };
}

/** The chunks by name; those of one name are concatenated. */
function chunksOf(path: string, bytes: Buffer): Map<string, Buffer> {
  if (bytes.toString("hex", 0, 8) !== SIGNATURE) throw exampleError(path, "a PNG", "another format");
  const chunks = new Map<string, Buffer[]>();
  for (let offset = 8; offset + 12 <= bytes.length; ) {
    const size = bytes.readUInt32BE(offset);
    const name = bytes.toString("latin1", offset + 4, offset + 8);
    if (offset + 12 + size > bytes.length) throw exampleError(path, `${size} bytes of ${name}`, "fewer");
    const content = bytes.subarray(offset + 8, offset + 8 + size);
    const others = chunks.get(name);
    if (others === undefined) chunks.set(name, [content]);
    else others.push(content);
    offset += 12 + size;
  }
  return new Map(Array.from(chunks, ([name, parts]) => [name, Buffer.concat(parts)]));
}

/** @param sizeBytes - expected size: no more is unpacked */
function inflated(path: string, data: Buffer, sizeBytes: number): Buffer {
  try {
    return inflateSync(data, { maxOutputLength: sizeBytes + 1 });
  } catch (cause) {
    throw unreadable(path, cause);
  }
}

/** Undoes the filter of each row, which predicts bytes from those to the left, above, and above to the left. */
function unfiltered(
  path: string,
  data: Buffer,
  numRows: number,
  rowBytes: number,
  pixelBytes: number,
): Uint8Array {
  if (data.length !== numRows * (rowBytes + 1))
    throw exampleError(path, `${numRows} rows of ${rowBytes} bytes`, `${data.length} bytes`);
  const values = new Uint8Array(numRows * rowBytes);
  for (let row = 0; row < numRows; row++) {
    const filter = data[row * (rowBytes + 1)] ?? 0;
    for (let column = 0; column < rowBytes; column++) {
      const at = row * rowBytes + column;
      const left = column < pixelBytes ? 0 : (values[at - pixelBytes] ?? 0);
      const above = row === 0 ? 0 : (values[at - rowBytes] ?? 0);
      const corner = row === 0 || column < pixelBytes ? 0 : (values[at - rowBytes - pixelBytes] ?? 0);
      const guess = [0, left, above, (left + above) >> 1, paeth(left, above, corner)][filter];
      if (guess === undefined) throw exampleError(path, "filters 0 to 4", filter);
      values[at] = (data[row * (rowBytes + 1) + 1 + column] ?? 0) + guess;
    }
  }
  return values;
}

/** The neighbour closest to left + above − corner. */
function paeth(left: number, above: number, corner: number): number {
  const [byLeft, byAbove] = [Math.abs(above - corner), Math.abs(left - corner)];
  const byCorner = Math.abs(left + above - 2 * corner);
  if (byLeft <= byAbove && byLeft <= byCorner) return left;
  return byAbove <= byCorner ? above : corner;
}
