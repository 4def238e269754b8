import { JsonCursor } from "./json-cursor.ts";

/** Any JSON value. */
export type JsonValue = null | boolean | number | string | readonly JsonValue[] | JsonObject;

/** A JSON object. */
export interface JsonObject {
  readonly [key: string]: JsonValue;
}

const maxDepth = 64;

/**
 * The object that a JSON text holds, with the strictness of `JsonCursor` and at most 64 levels deep and 1.5 million values long.
 * @param where - what the text is, for messages
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
 * The value at the cursor.
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
