import { type JsonRecord, readJsonLines } from "./json-lines.ts";
import { readParquet } from "./parquet.ts";
import { readTable } from "./table.ts";

/**
 * The examples of a file, each a record, by what its name ends in: `.parquet`, `.jsonl`, or a table whose first line names the
 * columns.
 * @throws {TroupeError} `DATA_UNREADABLE`, `DATA_EXAMPLE` naming the line
 */
export async function readRecords(path: string): Promise<readonly JsonRecord[]> {
  if (path.endsWith(".parquet")) return readParquet(path);
  return path.endsWith(".jsonl") ? readJsonLines(path) : readTable(path);
}
