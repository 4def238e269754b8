import { type JsonRecord, readJson, readJsonLines } from "./json-lines.ts";
import { readParquet } from "./parquet.ts";
import { exampleError, readText } from "./refusal.ts";

/**
 * Reads the examples of a file as records, by its extension: `.parquet`, `.jsonl`, `.json`, or a table whose first line names the columns.
 * @throws {TroupeError} `DATA_UNREADABLE`, `DATA_EXAMPLE` naming the line
 */
export async function readRecords(path: string): Promise<readonly JsonRecord[]> {
  if (path.endsWith(".parquet")) return readParquet(path);
  if (path.endsWith(".json")) return readJson(path);
  return path.endsWith(".jsonl") ? readJsonLines(path) : readTable(path);
}

/** A line of a table, by the names of its first line. */
export type TableRow = Readonly<Record<string, string>>;

/**
 * The lines of a tab-separated file whose first line names the columns. Quotation marks mean nothing, as in GLUE's files.
 * @throws {TroupeError} `DATA_UNREADABLE`, `DATA_EXAMPLE` for a line of another number of columns
 */
export async function readTable(path: string): Promise<TableRow[]> {
  const text = await readText(path);
  const [head = "", ...lines] = text.replace(/^\uFEFF/, "").split(/\r?\n/);
  const names = head.split("\t");
  const rows: TableRow[] = [];
  for (const [index, line] of lines.entries()) {
    if (line === "") continue;
    const cells = line.split("\t");
    if (cells.length !== names.length)
      throw exampleError(`${path}:${index + 2}`, `${names.length} columns`, cells.length);
    rows.push(Object.fromEntries(names.map((name, column) => [name, cells[column] as string])));
  }
  return rows;
}
