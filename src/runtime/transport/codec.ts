import { TroupeError } from "../../errors/index.ts";

/**
 * Teaches messages about one class of value that cannot be cloned as it is. `encode` makes plain data of
 * it in the sender's thread, `decode` a working value in the receiver's.
 */
export interface Codec {
  /** Tells encoded values of different codecs apart; the same in every thread. */
  readonly tag: string;
  accepts(value: object): boolean;
  encode(value: object): unknown;
  decode(data: unknown): unknown;
}

const deepestNesting = 64;
const tagField = "$codec";

/** What becomes of the objects in a message; each function returns its argument where nothing is to change. */
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
   * Returns `value` itself unless something in it had to be encoded; then a copy of the path to it. Looks into
   * plain objects and arrays.
   */
  encode(value: unknown): unknown {
    return replaceParts(value, this.#encoder, 0);
  }

  /** The reverse of {@link encode}. */
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

/** Freezes a message through and through, so that changing it after sending throws. */
export function deepFreeze(value: unknown): void {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return;
  if (!Array.isArray(value) && !isPlain(value)) return;
  Object.freeze(value);
  for (const part of Object.values(value)) deepFreeze(part);
}

/** Returns `value` itself unless a part of it was replaced; then a copy of the path to that part. */
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

/** Whether an object is a record: data without behaviour. */
export function isPlain(value: object): value is Record<string, unknown> {
  const prototype = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

function nestedTooDeep(): TroupeError {
  return new TroupeError(
    "MESSAGE_UNSENDABLE",
    {
      where: "send",
      expected: `a message nested at most ${deepestNesting} deep`,
      got: "one that is deeper or contains itself",
      hint: "send plain data",
    },
    { fields: { deepestNesting } },
  );
}
