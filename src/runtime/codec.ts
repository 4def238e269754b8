import { TroupeError } from "../errors.ts";

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

/** The codecs of one actor, applied to every message that leaves or enters. */
export class CodecSet {
  readonly #codecs: Codec[] = [];
  readonly #byTag = new Map<string, Codec>();

  constructor(codecs: readonly Codec[]) {
    this.teach(codecs);
  }

  /** Adds codecs; the first that accepts a value encodes it. */
  teach(codecs: readonly Codec[]): void {
    for (const codec of codecs) {
      this.#codecs.push(codec);
      this.#byTag.set(codec.tag, codec);
    }
  }

  /** Returns `value` itself unless something in it had to be encoded; then a copy of the path to it. */
  encode(value: unknown): unknown {
    return transform(value, (object) => this.#encodeObject(object), 0);
  }

  /** The reverse of {@link encode}. */
  decode(value: unknown): unknown {
    return transform(value, (object) => this.#decodeObject(object), 0);
  }

  #encodeObject(object: object): unknown {
    if (isPlain(object)) return object;
    const codec = this.#codecs.find((candidate) => candidate.accepts(object));
    return codec === undefined ? object : { [tagField]: codec.tag, data: codec.encode(object) };
  }

  #decodeObject(object: object): unknown {
    const tag = (object as Record<string, unknown>)[tagField];
    if (tag === undefined) return object;
    const codec = this.#byTag.get(tag as string);
    return codec === undefined ? object : codec.decode((object as { data?: unknown }).data);
  }
}

/** Freezes a message through and through, so that changing it after sending throws. */
export function deepFreeze(value: unknown): void {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return;
  if (!isPlain(value) && !Array.isArray(value)) return;
  Object.freeze(value);
  for (const part of Object.values(value)) deepFreeze(part);
}

function transform(value: unknown, replace: (object: object) => unknown, depth: number): unknown {
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value)) return value;
  if (depth > deepestNesting) throw nestedTooDeep();
  if (Array.isArray(value)) return transformArray(value, replace, depth);
  const replaced = replace(value);
  if (replaced !== value || !isPlain(value)) return replaced;
  return transformRecord(value as Record<string, unknown>, replace, depth);
}

function transformArray(
  array: readonly unknown[],
  replace: (object: object) => unknown,
  depth: number,
): unknown {
  let copy: unknown[] | undefined;
  for (let index = 0; index < array.length; index++) {
    const part = array[index];
    if (typeof part !== "object" || part === null) continue;
    const replaced = transform(part, replace, depth + 1);
    if (replaced === part) continue;
    copy ??= [...array];
    copy[index] = replaced;
  }
  return copy ?? array;
}

function transformRecord(
  record: Record<string, unknown>,
  replace: (object: object) => unknown,
  depth: number,
): unknown {
  let copy: Record<string, unknown> | undefined;
  for (const name in record) {
    const part = record[name];
    if (typeof part !== "object" || part === null) continue;
    const replaced = transform(part, replace, depth + 1);
    if (replaced === part) continue;
    copy ??= { ...record };
    copy[name] = replaced;
  }
  return copy ?? record;
}

function isPlain(value: object): boolean {
  const prototype = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

function nestedTooDeep(): TroupeError {
  return new TroupeError(
    "MESSAGE_UNSENDABLE",
    `[send] a message nested at most ${deepestNesting} deep: this one is deeper or contains itself (send plain data)`,
    { fields: { deepestNesting } },
  );
}
