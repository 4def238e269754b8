import { JsonCursor } from "./json-cursor.ts";

/** Any JSON value. */
export type JsonValue = null | boolean | number | string | readonly JsonValue[] | JsonObject;

/** A JSON object. */
export interface JsonObject {
  readonly [key: string]: JsonValue;
}

const maxDepth = 64;

/**
 * Parses a JSON object as strictly as `JsonCursor`, at most 64 levels deep and with at most 3 million values.
 * @param where - name of the text in messages
 * @throws {TroupeError} `JSON_INVALID`
 */
export function parseJsonObject(text: string, where: string): JsonObject {
  const cursor = new JsonCursor(text, where);
  if (cursor.peek() !== "{") cursor.refuse("an object");
  const value = parseValue(cursor, 0) as JsonObject;
  cursor.end();
  return value;
}

/**
 * Reads the value at the cursor.
 * @param depth - levels above it
 * @throws {TroupeError} `JSON_INVALID`
 */
export function parseValue(cursor: JsonCursor, depth: number): JsonValue {
  if (depth > maxDepth) cursor.refuse(`at most ${maxDepth} levels`);
  cursor.keepOne();
  const next = cursor.peek();
  if (next === "{") {
    const value: Record<string, JsonValue> = {};
    cursor.object((key) => {
      value[key] = parseValue(cursor, depth + 1);
    });
    return value;
  }
  if (next === "[") {
    const value: JsonValue[] = [];
    cursor.array(() => value.push(parseValue(cursor, depth + 1)));
    return value;
  }
  if (next === '"') return cursor.string();
  return next === "-" || /\d/.test(next) ? cursor.number() : cursor.literal();
}
