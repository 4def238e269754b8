import { type JsonRecord, readJsonLines } from "./json-lines.ts";
import { readParquet } from "./parquet.ts";
import { readTable } from "./table.ts";

/**
 * Reads the examples of a file as records, by its extension: `.parquet`, `.jsonl`, or a table whose first line names
 * the columns.
 * @throws {TroupeError} `DATA_UNREADABLE`, `DATA_EXAMPLE` naming the line
 */
export async function readRecords(path: string): Promise<readonly JsonRecord[]> {
  if (path.endsWith(".parquet")) return readParquet(path);
  return path.endsWith(".jsonl") ? readJsonLines(path) : readTable(path);
}
