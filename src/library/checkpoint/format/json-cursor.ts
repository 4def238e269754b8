import { TroupeError } from "../../../errors/index.ts";

const quote = 0x22;
const backslash = 0x5c;
/** More than `parseBoundedJson` allows: a checkpoint holds a tokenizer that was read by it, and more. */
const MAX_VALUES = 3_000_000;

/**
 * Reads a JSON text value by value, and refuses it at the first character that does not fit the caller's expectation,
 * so that a hostile text costs no more than the part that was read. Stricter than `JSON.parse`: refuses a repeated key,
 * the key `__proto__`, an integer that a double would round, and half of a surrogate pair.
 * @throws {TroupeError} `JSON_INVALID` naming `where` and the character, from every method
 */
export class JsonCursor {
  readonly #text: string;
  readonly #where: string;
  #index = 0;
  #numValues = 0;

  /**
   * @param text - the complete text
   * @param where - its name in messages, such as a path
   */
  constructor(text: string, where: string) {
    this.#text = text;
    this.#where = where;
  }

  /** The first character of the next value or sign; "" at the end of the text. */
  peek(): string {
    this.#skipSpace();
    return this.#text.charAt(this.#index);
  }

  /** Counts a value that is kept: even a small text could hold enough of them to fill the memory. */
  keepOne(): void {
    if (++this.#numValues > MAX_VALUES) throw this.#refusal(`at most ${MAX_VALUES} values`);
  }

  /** Reads an object, calling `member` with the cursor before the value of each key. */
  object(member: (key: string) => void): void {
    const keys = new Set<string>();
    this.#sequence("{", "}", () => {
      const begin = this.#index;
      const key = this.string();
      if (keys.has(key)) throw this.#refusal("each key once", begin);
      if (key === "__proto__") throw this.#refusal("another key", begin);
      keys.add(key);
      this.#pass(":");
      member(key);
    });
  }

  /** Reads an array, calling `element` with the cursor before each element. */
  array(element: () => void): void {
    this.#sequence("[", "]", element);
  }

  /** Reads a string. */
  string(): string {
    this.#skipSpace();
    const begin = this.#index;
    if (this.#text.charCodeAt(begin) !== quote) throw this.#refusal("a string");
    let escaped = false;
    let end = begin + 1;
    for (let code = this.#text.charCodeAt(end); code !== quote; code = this.#text.charCodeAt(++end)) {
      // Also false for NaN, the end of the text; JSON requires escapes for control characters.
      if (!(code >= 0x20)) throw this.#refusal("a closing quote", end);
      if (code === backslash) {
        escaped = true;
        end++;
      }
    }
    this.#index = end + 1;
    const value = escaped ? this.#unescape(begin, end + 1) : this.#text.slice(begin + 1, end);
    if (!value.isWellFormed()) throw this.#refusal("well-formed characters", begin);
    return value;
  }

  /** Reads a number; an integer must be exact as a double, or written as JavaScript would. */
  number(): number {
    this.#skipSpace();
    const begin = this.#index;
    const literal = /-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?/y;
    literal.lastIndex = begin;
    const match = literal.exec(this.#text);
    if (match === null) throw this.#refusal("a number");
    this.#index = literal.lastIndex;
    const value = Number(match[0]);
    const isInteger = match[1] === undefined && match[2] === undefined;
    if (!Number.isFinite(value) || (isInteger && !isHeld(match[0], value)))
      throw this.#refusal("a number that a double holds", begin);
    return value;
  }

  /** Reads an integer from 0 to 2^53 - 1, written as digits only. */
  count(): number {
    this.#skipSpace();
    const begin = this.#index;
    const value = this.number();
    if (!Number.isSafeInteger(value) || !/^\d+$/.test(this.#text.slice(begin, this.#index)))
      throw this.#refusal("a whole number from 0 to 2^53 - 1", begin);
    return value;
  }

  /** Reads an array of counts, such as a shape; refuses more than `maxLength` before reading them. */
  counts(maxLength: number): number[] {
    const values: number[] = [];
    this.array(() => {
      if (values.length === maxLength) this.refuse(`at most ${maxLength} numbers`);
      values.push(this.count());
    });
    return values;
  }

  /** Reads `true`, `false` or `null`. */
  literal(): boolean | null {
    this.#skipSpace();
    for (const [word, value] of [
      ["true", true],
      ["false", false],
      ["null", null],
    ] as const) {
      if (!this.#text.startsWith(word, this.#index)) continue;
      this.#index += word.length;
      return value;
    }
    throw this.#refusal("a value");
  }

  /** Refuses the next value; `expected` describes a valid one. */
  refuse(expected: string): never {
    this.#skipSpace();
    throw this.#refusal(expected);
  }

  /** Checks that only white space is left. */
  end(): void {
    this.#skipSpace();
    if (this.#index < this.#text.length) throw this.#refusal("the end");
  }

  #sequence(open: string, close: string, item: () => void): void {
    this.#pass(open);
    if (this.peek() === close) {
      this.#index++;
      return;
    }
    while (true) {
      this.#skipSpace();
      item();
      if (this.peek() === close) break;
      this.#pass(",");
    }
    this.#index++;
  }

  #pass(sign: string): void {
    if (this.peek() !== sign) throw this.#refusal(`"${sign}"`);
    this.#index++;
  }

  #skipSpace(): void {
    for (let code = this.#text.charCodeAt(this.#index); ; code = this.#text.charCodeAt(++this.#index)) {
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return;
    }
  }

  #unescape(begin: number, end: number): string {
    try {
      return JSON.parse(this.#text.slice(begin, end)) as string;
    } catch {
      throw this.#refusal("a string with valid escapes", begin);
    }
  }

  #refusal(expected: string, index = this.#index): TroupeError {
    const got = index < this.#text.length ? JSON.stringify(this.#text.slice(index, index + 24)) : "the end";
    return new TroupeError("JSON_INVALID", {
      where: "json",
      expected: `${expected} at character ${index} of ${this.#where}`,
      got,
      hint: "the file is damaged, or is no JSON",
      fields: { where: this.#where, index },
    });
  }
}

/** Whether an integer was read exactly, or is written as JavaScript writes its value. */
function isHeld(literal: string, value: number): boolean {
  return String(value) === literal || BigInt(literal) === BigInt(value);
}
