import { type Replacer, replaceParts, isPlain } from "./codec.ts";

/**
 * Teaches messages what must change where they leave their process: plain data that names something of the process, such
 * as a tensor in its memory. Given by the preload module.
 */
export interface Border {
  /** Whether this piece of plain data names something of its process. */
  accepts(record: Readonly<Record<string, unknown>>): boolean;
  /** Makes it fit for another process; asked once for each record, in the sender's thread. */
  leave(record: Readonly<Record<string, unknown>>): unknown;
  /** Makes of that what the receiver's process knows, in the receiver's thread. */
  enter(data: unknown): unknown;
}

const borderField = "$border";

/** One thread's side of the border: what it sends out and takes in. */
export class BorderPost {
  readonly #border: Border | undefined;
  /** A packet that could not be sent whole is sent in parts: what left once does not leave again. */
  readonly #left = new WeakMap<object, unknown>();
  readonly #leaving: Replacer = { plain: (record) => this.#leave(record), foreign: (object) => object };
  readonly #entering: Replacer = { plain: (record) => this.#enter(record), foreign: (object) => object };
  #hasChanged = false;

  constructor(border: Border | undefined) {
    this.#border = border;
  }

  /**
   * What of `value` can be sent to another process, and whether anything in it had to change.
   * @throws {Error} where something in it can be in one process only; nothing has left then
   */
  leave(value: unknown): { readonly value: unknown; readonly hasChanged: boolean } {
    refuseUncopyable(value);
    this.#hasChanged = false;
    const left = replaceParts(value, this.#leaving, 0);
    return { value: left, hasChanged: this.#hasChanged };
  }

  /** The reverse of {@link leave}. */
  enter(value: unknown): unknown {
    return replaceParts(value, this.#entering, 0);
  }

  #leave(record: Record<string, unknown>): unknown {
    if (this.#border?.accepts(record) !== true) return record;
    this.#hasChanged = true;
    const before = this.#left.get(record);
    if (before !== undefined) return before;
    const left = { [borderField]: this.#border.leave(record) };
    this.#left.set(record, left);
    return left;
  }

  #enter(record: Record<string, unknown>): unknown {
    const data = record[borderField];
    return data === undefined || this.#border === undefined ? record : this.#border.enter(data);
  }
}

/**
 * Refuses what a copy in another process would be less than: the packer would drop it in silence. Instances of classes become
 * plain objects, as they do between threads.
 */
function refuseUncopyable(value: unknown): void {
  if (typeof value === "function" || typeof value === "symbol") {
    throw new Error(`${String(value)} could not be cloned`);
  }
  if (typeof value !== "object" || value === null) return;
  if (Array.isArray(value)) value.forEach(refuseUncopyable);
  else if (isPlain(value)) Object.values(value).forEach(refuseUncopyable);
  else if (isShared(value))
    throw new Error("memory that threads share could not be cloned for another process");
  // Ports, promises and the like: what not even a thread can be sent.
  else if (!ArrayBuffer.isView(value)) structuredClone(value);
}

function isShared(object: object): boolean {
  return (ArrayBuffer.isView(object) ? object.buffer : object) instanceof SharedArrayBuffer;
}
