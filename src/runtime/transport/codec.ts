import { isPlain, TroupeError } from "../../errors/index.ts";

/**
 * Lets messages carry values of one class that cannot be cloned as they are. `encode` turns a value into plain data in the
 * sender's thread, `decode` turns that back into a value in the receiver's.
 */
export interface Codec {
  /** Name of the codec in encoded values; the same in every thread. */
  readonly tag: string;
  accepts(value: object): boolean;
  encode(value: object): unknown;
  decode(data: unknown): unknown;
}

const deepestNesting = 64;
const tagField = "$codec";

/** Functions that replace objects in a message; each returns its argument where nothing changes. */
export interface Replacer {
  plain(record: Record<string, unknown>): unknown;
  foreign(object: object): unknown;
}

/** The codecs of one actor, applied to every message that leaves or enters. */
export class CodecSet {
  readonly #codecs: Codec[] = [];
  readonly #byTag = new Map<string, Codec>();
  readonly #encoder: Replacer;
  readonly #decoder: Replacer;

  constructor(codecs: readonly Codec[]) {
    this.teach(codecs);
    this.#encoder = { plain: (record) => record, foreign: (object) => this.#encodeObject(object) };
    this.#decoder = { plain: (record) => this.#decodeRecord(record), foreign: (object) => object };
  }

  /** Adds codecs; the first that accepts a value encodes it. */
  teach(codecs: readonly Codec[]): void {
    for (const codec of codecs) {
      this.#codecs.push(codec);
      this.#byTag.set(codec.tag, codec);
    }
  }

  /**
   * Encodes the values in a message that a codec accepts. Returns `value` itself if there are none, otherwise a copy of the
   * path to each. Looks into plain objects and arrays.
   */
  encode(value: unknown): unknown {
    return replaceParts(value, this.#encoder, 0);
  }

  /** Reverses {@link encode}. */
  decode(value: unknown): unknown {
    return replaceParts(value, this.#decoder, 0);
  }

  #encodeObject(object: object): unknown {
    const codec = this.#codecs.find((candidate) => candidate.accepts(object));
    return codec === undefined ? object : { [tagField]: codec.tag, data: codec.encode(object) };
  }

  #decodeRecord(record: Record<string, unknown>): unknown {
    const tag = record[tagField];
    if (tag === undefined) return record;
    const codec = this.#byTag.get(tag as string);
    return codec === undefined ? record : codec.decode(record.data);
  }
}

/** Freezes a message and everything in it, so that changing it after sending throws. */
export function deepFreeze(value: unknown): void {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return;
  if (!Array.isArray(value) && !isPlain(value)) return;
  Object.freeze(value);
  for (const part of Object.values(value)) deepFreeze(part);
}

/** Replaces the parts of a value. Returns `value` itself if none was replaced, otherwise a copy of the path to each that was. */
export function replaceParts(value: unknown, replacer: Replacer, depth: number): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (depth > deepestNesting) throw nestedTooDeep();
  if (Array.isArray(value)) return replaceInArray(value, replacer, depth);
  if (!isPlain(value)) return ArrayBuffer.isView(value) ? value : replacer.foreign(value);
  const replaced = replacer.plain(value);
  return replaced === value ? replaceInRecord(value, replacer, depth) : replaced;
}

function replaceInArray(array: readonly unknown[], replacer: Replacer, depth: number): unknown {
  let copy: unknown[] | undefined;
  for (let index = 0; index < array.length; index++) {
    const part = array[index];
    if (typeof part !== "object" || part === null) continue;
    const replaced = replaceParts(part, replacer, depth + 1);
    if (replaced === part) continue;
    copy ??= [...array];
    copy[index] = replaced;
  }
  return copy ?? array;
}

function replaceInRecord(record: Record<string, unknown>, replacer: Replacer, depth: number): unknown {
  let copy: Record<string, unknown> | undefined;
  for (const name in record) {
    const part = record[name];
    if (typeof part !== "object" || part === null) continue;
    const replaced = replaceParts(part, replacer, depth + 1);
    if (replaced === part) continue;
    copy ??= { ...record };
    copy[name] = replaced;
  }
  return copy ?? record;
}

function nestedTooDeep(): TroupeError {
  return new TroupeError("MESSAGE_UNSENDABLE", {
    where: "send",
    expected: `a message nested at most ${deepestNesting} deep`,
    got: "one that is deeper or contains itself",
    hint: "send plain data",
    fields: { deepestNesting },
  });
}
