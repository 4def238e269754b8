import { isPlain } from "../../errors/index.ts";
import { type Replacer, replaceParts } from "./codec.ts";

/** Translates plain data that names something of its process, such as a tensor, when it leaves. Of the preload module. */
export interface IpcCodec {
  /** Whether this piece of plain data names something of its process. */
  accepts(record: Readonly<Record<string, unknown>>): boolean;
  /** Encodes a record for another process, once, in the sender's thread. */
  encode(record: Readonly<Record<string, unknown>>): unknown;
  /** Decodes it in the receiver's thread. */
  decode(data: unknown): unknown;
}

const ipcField = "$ipc";

/** Applies the {@link IpcCodec} of one thread to every packet that it sends to or receives from another process. */
export class IpcEncoding {
  readonly #codec: IpcCodec | undefined;
  /** Encoded records. A packet that could not be sent at once is sent record by record; none is encoded twice. */
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
   * Encodes `value` for another process; `hasChanged` says whether anything in it was replaced.
   * @throws {Error} if something in it cannot leave its process; nothing is encoded then
   */
  encode(value: unknown): { readonly value: unknown; readonly hasChanged: boolean } {
    refuseUncopyable(value);
    this.#hasChanged = false;
    const encoded = replaceParts(value, this.#encoder, 0);
    return { value: encoded, hasChanged: this.#hasChanged };
  }

  /** Reverses {@link encode}. */
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

/** Refuses values that the packer would silently drop. Instances of classes become plain objects, as they do between threads. */
function refuseUncopyable(value: unknown): void {
  if (typeof value === "function" || typeof value === "symbol")
    throw new Error(`${String(value)} could not be cloned`);
  if (typeof value !== "object" || value === null) return;
  if (Array.isArray(value)) value.forEach(refuseUncopyable);
  else if (isPlain(value)) Object.values(value).forEach(refuseUncopyable);
  else if ((ArrayBuffer.isView(value) ? value.buffer : value) instanceof SharedArrayBuffer)
    throw new Error("memory that threads share could not be cloned for another process");
  // Throws for ports, promises and other values that cannot even be sent to a thread.
  else if (!ArrayBuffer.isView(value)) structuredClone(value);
}
