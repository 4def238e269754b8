import { randomUUID } from "node:crypto";
import { renameSync, writeFileSync } from "node:fs";
import { fileFailure, TroupeError } from "../../../../errors/index.ts";
import { maxFileBytes, readBoundedSync } from "../../../../errors/untrusted/index.ts";

/** Integers in memory, of a type that an `.npy` file may have. */
export type NpyArray = Uint8Array | Int16Array | Int32Array | Uint32Array | BigInt64Array | BigUint64Array;

const kinds = {
  "|u1": Uint8Array,
  "<i2": Int16Array,
  "<i4": Int32Array,
  "<u4": Uint32Array,
  "<i8": BigInt64Array,
  "<u8": BigUint64Array,
} as const;
const magic = Buffer.from("\x93NUMPY\x01\x00", "latin1");
const fixedBytes = magic.length + 2;

/** An array and the sizes of its dims, row-major. */
export interface Npy {
  readonly shape: readonly number[];
  readonly data: NpyArray;
}

/** Writes an `.npy` file of version 1 atomically, with the same bytes as numpy. */
export function writeNpy(path: string, { shape, data }: Npy): void {
  const descr = Object.entries(kinds).find(([, kind]) => data instanceof kind)?.[0];
  const dims = shape.length === 1 ? `${shape[0]},` : shape.join(", ");
  const text = `{'descr': '${descr}', 'fortran_order': False, 'shape': (${dims}), }`;
  const padded = Math.ceil((fixedBytes + text.length + 1) / 64) * 64 - fixedBytes;
  const length = Buffer.alloc(2);
  length.writeUInt16LE(padded);
  const header = Buffer.from(`${text.padEnd(padded - 1)}\n`, "latin1");
  const temporary = `${path}.tmp-${randomUUID()}`;
  const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  writeFileSync(temporary, Buffer.concat([magic, length, header, bytes]), { flush: true });
  renameSync(temporary, path);
}

/** Reads an `.npy` file of integers. @throws {TroupeError} `DATA_INDEX` where it is invalid or truncated */
export function readNpy(path: string): Npy {
  const bytes = bytesOf(path);
  if (!bytes.subarray(0, magic.length).equals(magic)) throw damaged(path, "an .npy file of version 1");
  const begin = fixedBytes + bytes.readUInt16LE(magic.length);
  const header = bytes.toString("latin1", fixedBytes, begin);
  const [, descr = "", order, dims = ""] =
    /'descr': '([^']+)', 'fortran_order': (\w+), 'shape': \(([^)]*)\)/.exec(header) ?? [];
  const Kind = Object.hasOwn(kinds, descr) ? kinds[descr as keyof typeof kinds] : undefined;
  if (Kind === undefined || order !== "False") throw damaged(path, "whole numbers in C order");
  const shape = dims.split(",").flatMap((dim) => (dim.trim() === "" ? [] : [Number(dim)]));
  const numel = shape.reduce((product, dim) => product * dim, 1);
  if (bytes.length !== begin + numel * Kind.BYTES_PER_ELEMENT) throw damaged(path, `${numel} numbers`);
  const copy = new Uint8Array(bytes.subarray(begin)).buffer;
  return { shape, data: new Kind(copy) };
}

function bytesOf(path: string): Buffer {
  try {
    return readBoundedSync(path, maxFileBytes.numbers);
  } catch (cause) {
    throw damaged(path, `a readable file, got ${fileFailure(cause)}`);
  }
}

function damaged(path: string, expected: string): TroupeError {
  return new TroupeError("DATA_INDEX", {
    where: "npy",
    expected,
    got: path,
    hint: "delete the file: it will be made again",
    fields: { path },
  });
}
