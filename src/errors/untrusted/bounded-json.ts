const MAX_DEPTH = 64;
/** The most values in all lists and records together. The largest known vocabulary, with its merges, has two million. */
const MAX_VALUES = 2_500_000;

/** Thrown for a JSON text that is too deep or has too many values; the message fits after "got". */
export class JsonRefused extends Error {}

/**
 * Parses untrusted JSON. Depth and values are counted first, so that parsing takes at most about 200 MB and cannot overflow
 * the stack.
 * @throws {JsonRefused} for more than 64 levels or 2.5 million values
 * @throws {SyntaxError} if the text is not JSON
 */
export function parseBoundedJson(text: string): unknown {
  let [depth, numValues] = [0, 0];
  for (let index = 0; index < text.length; index++) {
    switch (text.charCodeAt(index)) {
      case 0x22: // a quotation mark
        index = endOfString(text, index);
        break;
      case 0x5b: // a list
      case 0x7b: // a record
        numValues++;
        if (++depth > MAX_DEPTH) throw new JsonRefused(`JSON of more than ${MAX_DEPTH} levels`);
        break;
      case 0x5d:
      case 0x7d:
        depth--;
        break;
      case 0x2c: // a comma
        numValues++;
    }
  }
  if (numValues > MAX_VALUES) throw new JsonRefused(`JSON of more than ${MAX_VALUES} values`);
  return JSON.parse(text);
}

function endOfString(text: string, begin: number): number {
  let end = begin;
  do {
    end = text.indexOf('"', end + 1);
    if (end < 0) return text.length;
  } while (isEscaped(text, end));
  return end;
}

/** Whether an odd number of backslashes precedes this place. */
function isEscaped(text: string, place: number): boolean {
  let first = place;
  while (text.charCodeAt(first - 1) === 0x5c) first--;
  return (place - first) % 2 === 1;
}

/**
 * The value that a table has of its own under a name that a stranger chose; undefined for all others, such as `constructor`, which
 * every object has from the language.
 */
export function ownValue<T>(table: Readonly<Record<string, T>>, name: unknown): T | undefined {
  return typeof name === "string" && Object.hasOwn(table, name) ? table[name] : undefined;
}
