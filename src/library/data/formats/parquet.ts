import { maxFileBytes, readBounded } from "../../../errors/untrusted/index.ts";
import { noteFile } from "../noted-files.ts";
import type { JsonRecord } from "./json-lines.ts";
import { checkParquet } from "./parquet-bounds.ts";
import { unreadable } from "./refusal.ts";

/**
 * Reads the rows of a Parquet file in the format of Hugging Face's datasets: columns by name, 64-bit integers as
 * numbers, nested lists and records unchanged. Pages may be plain or compressed by Snappy.
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
    const rows = await parquetReadObjects({ file });
    return rows.map((row) => plain(row) as JsonRecord);
  } catch (cause) {
    throw unreadable(path, cause);
  }
}

function plain(value: unknown): unknown {
  if (typeof value === "bigint") return Number(value);
  if (Array.isArray(value)) return value.map(plain);
  if (value === null || typeof value !== "object" || Object.getPrototypeOf(value) !== Object.prototype)
    return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, plain(each)]));
}

function sliceOf(bytes: Buffer, begin: number, end = bytes.length): ArrayBuffer {
  return new Uint8Array(bytes.subarray(begin, end)).buffer;
}
