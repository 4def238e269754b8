import zlib from "node:zlib";
import type { Compressors } from "hyparquet";
import { maxFileBytes, readBounded } from "../../../errors/untrusted/index.ts";
import { noteFile } from "../noted-files.ts";
import type { JsonRecord } from "./json-lines.ts";
import { unpackLz4Block } from "./lz4.ts";
import { checkParquet } from "./parquet-bounds.ts";
import { unreadable } from "./refusal.ts";

/**
 * Reads the rows of a Parquet file in the format of Hugging Face's datasets: columns by name, 64-bit integers as
 * numbers, nested lists and records unchanged. Pages may be plain or packed by Snappy, LZ4, gzip, Brotli or, from Node 22.15 on, zstd.
 * @throws {TroupeError} `DATA_UNREADABLE`
 */
export async function readParquet(path: string): Promise<JsonRecord[]> {
  noteFile(path);
  // Imported lazily: actors do not need it.
  const { parquetReadObjects } = await import("hyparquet");
  try {
    const bytes = await readBounded(path, maxFileBytes.numbers);
    checkParquet(bytes);
    const file = {
      byteLength: bytes.length,
      slice: (begin: number, end?: number) => sliceOf(bytes, begin, end),
    };
    const rows = await parquetReadObjects({ file, compressors });
    return rows.map((row) => plainValue(row) as JsonRecord);
  } catch (cause) {
    throw unreadable(path, cause);
  }
}

/** Unpackers of pages that are not the reader's own, each bounded by the size that the page's head claims. */
export const compressors: Compressors = {
  GZIP: unlessEmpty((bytes, size) => zlib.gunzipSync(bytes, { maxOutputLength: size })),
  BROTLI: unlessEmpty((bytes, size) => zlib.brotliDecompressSync(bytes, { maxOutputLength: size })),
  LZ4_RAW: unlessEmpty(unpackLz4Block),
  // Absent before Node 22.15.
  ...(typeof zlib.zstdDecompressSync === "function" && {
    ZSTD: unlessEmpty((bytes, size) => zlib.zstdDecompressSync(bytes, { maxOutputLength: size })),
  }),
};

type Unpack = (bytes: Uint8Array, size: number) => Uint8Array;

/** A page of nulls alone has no bytes, which zlib takes for a wrong bound. */
function unlessEmpty(unpack: Unpack): Unpack {
  return (bytes, size) => (size === 0 ? new Uint8Array() : unpack(bytes, size));
}

/** Makes a value of a table plain: 64-bit integers become numbers. Lists and records are changed in place. */
export function plainValue(value: unknown): unknown {
  if (typeof value === "bigint") return Number(value);
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) {
      if (mayChange(value[index])) value[index] = plainValue(value[index]);
    }
  } else if (
    typeof value === "object" &&
    value !== null &&
    Object.getPrototypeOf(value) === Object.prototype
  ) {
    const record = value as Record<string, unknown>;
    for (const name of Object.keys(record)) {
      if (mayChange(record[name])) record[name] = plainValue(record[name]);
    }
  }
  return value;
}

const mayChange = (value: unknown): boolean => typeof value === "bigint" || typeof value === "object";

/** Copies bytes `begin` to `end` into memory of its own. */
export function sliceOf(bytes: Buffer, begin: number, end = bytes.length): ArrayBuffer {
  return new Uint8Array(bytes.subarray(begin, end)).buffer;
}
