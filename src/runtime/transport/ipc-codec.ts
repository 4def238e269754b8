import { isPlain, type Replacer, replaceParts } from "./codec.ts";

/**
 * Teaches messages what must change where they leave their process: plain data that names something of the process, such
 * as a tensor in its memory. Given by the preload module.
 */
export interface IpcCodec {
  /** Whether this piece of plain data names something of its process. */
  accepts(record: Readonly<Record<string, unknown>>): boolean;
  /** Makes it fit for another process; asked once for each record, in the sender's thread. */
  encode(record: Readonly<Record<string, unknown>>): unknown;
  /** Makes of that what the receiver's process knows, in the receiver's thread. */
  decode(data: unknown): unknown;
}

const ipcField = "$ipc";

/** The {@link IpcCodec} of one thread, applied to every packet that it sends to another process or takes in from one. */
export class IpcEncoding {
  readonly #codec: IpcCodec | undefined;
  /** A packet that could not be sent whole is sent in parts: what was encoded once is not encoded again. */
  readonly #encoded = new WeakMap<object, unknown>();
  readonly #encoder: Replacer = {
    plain: (record) => this.#encodeRecord(record),
    foreign: (object) => object,
  };
  readonly #decoder: Replacer = {
    plain: (record) => this.#decodeRecord(record),
    foreign: (object) => object,
  };
  #hasChanged = false;

  constructor(codec: IpcCodec | undefined) {
    this.#codec = codec;
  }

  /**
   * What of `value` can be sent to another process, and whether anything in it had to change.
   * @throws {Error} where something in it can be in one process only; nothing is encoded then
   */
  encode(value: unknown): { readonly value: unknown; readonly hasChanged: boolean } {
    refuseUncopyable(value);
    this.#hasChanged = false;
    const encoded = replaceParts(value, this.#encoder, 0);
    return { value: encoded, hasChanged: this.#hasChanged };
  }

  /** The reverse of {@link encode}. */
  decode(value: unknown): unknown {
    return replaceParts(value, this.#decoder, 0);
  }

  #encodeRecord(record: Record<string, unknown>): unknown {
    if (this.#codec?.accepts(record) !== true) return record;
    this.#hasChanged = true;
    const before = this.#encoded.get(record);
    if (before !== undefined) return before;
    const encoded = { [ipcField]: this.#codec.encode(record) };
    this.#encoded.set(record, encoded);
    return encoded;
  }

  #decodeRecord(record: Record<string, unknown>): unknown {
    const data = record[ipcField];
    return data === undefined || this.#codec === undefined ? record : this.#codec.decode(data);
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
