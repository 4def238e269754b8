import { isRecord } from "../../../errors/index.ts";
import { exampleError, readText } from "./refusal.ts";

/** A line of a file, as a record. */
export type JsonRecord = Readonly<Record<string, unknown>>;

/**
 * Reads a file with one JSON object per line; skips empty lines.
 * @throws {TroupeError} `DATA_UNREADABLE`, `DATA_EXAMPLE` naming the line
 */
export async function readJsonLines(path: string): Promise<JsonRecord[]> {
  return linesOf(await readText(path), path);
}

function linesOf(text: string, path: string): JsonRecord[] {
  const records: JsonRecord[] = [];
  for (const [index, line] of text.split("\n").entries()) {
    if (line.trim() !== "") records.push(recordOf(line, `${path}:${index + 1}`));
  }
  return records;
}

/**
 * Reads a `.json`: one array of objects, or an object per line.
 * @throws {TroupeError} as {@link readJsonLines}, `DATA_EXAMPLE` naming the object
 */
export async function readJson(path: string): Promise<readonly JsonRecord[]> {
  const text = await readText(path);
  if (!/^\s*\[/.test(text)) return linesOf(text, path);
  const records = parsed(text, path) as readonly unknown[];
  return records.map((record, index) => asRecord(record, `${path}, example ${index + 1}`));
}

/** Parses a line as a record. @throws {TroupeError} `DATA_EXAMPLE` naming `place` */
export function recordOf(line: string, place: string): JsonRecord {
  return asRecord(parsed(line, place), place);
}

function parsed(text: string, place: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw exampleError(place, "a JSON object", (cause as Error).message);
  }
}

function asRecord(value: unknown, place: string): JsonRecord {
  if (isRecord(value)) return value;
  throw exampleError(place, "a JSON object", JSON.stringify(value).slice(0, 40));
}
