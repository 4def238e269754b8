import { open } from "node:fs/promises";
import type { GgufValue } from "../../models/index.ts";

/** A tensor to write, whose values are read when it is written. */
export interface GgufEntry {
  readonly name: string;
  /** Row-major. */
  readonly shape: readonly number[];
  /** ggml's number of its type. */
  readonly code: number;
  readonly sizeBytes: number;
  /** The bytes, in parts. */
  parts(): AsyncIterable<Uint8Array>;
}

const VERSION = 3;
const ALIGNMENT = 32;

/** GGUF's numbers of types of values. */
const codes = { int8: 1, uint32: 4, int32: 5, float32: 6, bool: 7, string: 8, array: 9 } as const;

/**
 * Writes a GGUF file: a header of values and of the tensors' places, then the tensors, one after the other.
 * @param path - must not exist
 * @see https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
 */
export async function writeGguf(
  path: string,
  facts: Readonly<Record<string, GgufValue>>,
  entries: readonly GgufEntry[],
): Promise<void> {
  const header = new HeaderBytes();
  header.uint32(0x46554747); // GGUF
  header.uint32(VERSION);
  header.uint64(entries.length);
  header.uint64(Object.keys(facts).length);
  for (const [name, value] of Object.entries(facts)) {
    header.text(name);
    header.value(value);
  }
  let end = 0;
  for (const { name, shape, code, sizeBytes } of entries) {
    header.text(name);
    header.uint32(shape.length);
    for (const size of shape.toReversed()) header.uint64(size);
    header.uint32(code);
    header.uint64(end);
    end += sizeBytes + paddingAfter(sizeBytes);
  }
  const file = await open(path, "wx");
  try {
    const bytes = header.bytes();
    await file.appendFile(bytes);
    await file.appendFile(new Uint8Array(paddingAfter(bytes.length)));
    for (const { sizeBytes, parts } of entries) {
      for await (const part of parts()) await file.appendFile(part);
      await file.appendFile(new Uint8Array(paddingAfter(sizeBytes)));
    }
  } finally {
    await file.close();
  }
}

function paddingAfter(sizeBytes: number): number {
  return (ALIGNMENT - (sizeBytes % ALIGNMENT)) % ALIGNMENT;
}

/** The bytes of a header, which grow. */
class HeaderBytes {
  #buffer = Buffer.alloc(1 << 16);
  #length = 0;

  bytes(): Uint8Array {
    return this.#buffer.subarray(0, this.#length);
  }

  uint32(value: number): void {
    this.#place(4).writeUInt32LE(value);
  }

  uint64(value: number): void {
    this.#place(8).writeBigUInt64LE(BigInt(value));
  }

  text(text: string): void {
    const bytes = Buffer.from(text);
    this.uint64(bytes.length);
    this.#place(bytes.length).set(bytes);
  }

  /** A value with its type before it. */
  value(value: GgufValue): void {
    if ("uint" in value) {
      this.uint32(codes.uint32);
      this.uint32(value.uint);
    } else if ("float" in value) {
      this.uint32(codes.float32);
      this.#float(value.float);
    } else if ("flag" in value) {
      this.uint32(codes.bool);
      this.#place(1).writeUInt8(Number(value.flag));
    } else if ("text" in value) {
      this.uint32(codes.string);
      this.text(value.text);
    } else if ("texts" in value) this.#list("string", value.texts, (text) => this.text(text));
    else if ("ints" in value) this.#list("int32", value.ints, (int) => this.#place(4).writeInt32LE(int));
    else if ("floats" in value) this.#list("float32", value.floats, (float) => this.#float(float));
    else {
      this.#list("int8", [], () => {}, value.bytes.length);
      this.#place(value.bytes.length).set(value.bytes);
    }
  }

  #list<T>(
    type: keyof typeof codes,
    values: readonly T[],
    put: (value: T) => void,
    length = values.length,
  ): void {
    this.uint32(codes.array);
    this.uint32(codes[type]);
    this.uint64(length);
    for (const value of values) put(value);
  }

  #float(value: number): void {
    this.#place(4).writeFloatLE(value);
  }

  /** Room for the next bytes. */
  #place(size: number): Buffer {
    const end = this.#length + size;
    if (end > this.#buffer.length) {
      const larger = Buffer.alloc(Math.max(end, 2 * this.#buffer.length));
      larger.set(this.#buffer);
      this.#buffer = larger;
    }
    const place = this.#buffer.subarray(this.#length, end);
    this.#length = end;
    return place;
  }
}
