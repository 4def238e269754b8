import { exampleError, readText } from "./refusal.ts";

/** A line of a file, as a record. */
export type JsonRecord = Readonly<Record<string, unknown>>;

/**
 * Reads a file with one JSON object per line; skips empty lines.
 * @throws {TroupeError} `DATA_UNREADABLE`, `DATA_EXAMPLE` naming the line
 */
export async function readJsonLines(path: string): Promise<JsonRecord[]> {
  const text = await readText(path);
  const records: JsonRecord[] = [];
  for (const [index, line] of text.split("\n").entries()) {
    if (line.trim() !== "") records.push(recordOf(line, `${path}:${index + 1}`));
  }
  return records;
}

/** Parses a line as a record. @throws {TroupeError} `DATA_EXAMPLE` naming `place` */
export function recordOf(line: string, place: string): JsonRecord {
  try {
    const record = JSON.parse(line) as unknown;
    if (typeof record === "object" && record !== null && !Array.isArray(record)) return record as JsonRecord;
  } catch (cause) {
    throw exampleError(place, "a JSON object", (cause as Error).message);
  }
  throw exampleError(place, "a JSON object", line.slice(0, 40));
}
