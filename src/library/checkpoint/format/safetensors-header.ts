import { fileErrors, TroupeError } from "../../../errors/index.ts";
import { JsonCursor } from "./json-cursor.ts";

/** Bits per element of every safetensors dtype, in the reference writer's order. */
// biome-ignore format: a list
const dtypeBits = {
  BOOL: 8, F4: 4, F6_E2M3: 6, F6_E3M2: 6, U8: 8, I8: 8, F8_E5M2: 8, F8_E4M3: 8, F8_E8M0: 8,
  F8_E4M3FNUZ: 8, F8_E5M2FNUZ: 8, I16: 16, U16: 16, F16: 16, BF16: 16, I32: 32, U32: 32, F32: 32,
  C64: 64, F64: 64, I64: 64, U64: 64,
} as const;

/** Name of a dtype in safetensors. */
export type SafetensorsDType = keyof typeof dtypeBits;

/** A tensor in a file: its dtype, shape and place. */
export interface TensorEntry {
  readonly name: string;
  readonly dtype: SafetensorsDType;
  readonly shape: readonly number[];
  /** First byte, from the start of the data, which follows the header. */
  readonly begin: number;
  /** The byte after the last. */
  readonly end: number;
}

/** The header of a safetensors file, checked. */
export interface SafetensorsHeader {
  /** Free text, such as `format: pt`. */
  readonly metadata: ReadonlyMap<string, string>;
  /** In the order of the header. */
  readonly tensors: ReadonlyMap<string, TensorEntry>;
}

/** A tensor to be written. */
export type TensorFacts = Pick<TensorEntry, "name" | "dtype" | "shape">;

const maxNumTensors = 1_000_000;
const maxRank = 16;
const dtypeOrder = Object.keys(dtypeBits);

/** Size of a tensor in bytes. @returns undefined when it exceeds 2^53 - 1 or is not an integer */
export function tensorSizeBytes(dtype: SafetensorsDType, shape: readonly number[]): number | undefined {
  let numElements = 1;
  for (const size of shape) {
    numElements *= size;
    if (!Number.isSafeInteger(numElements)) return undefined;
  }
  const numBits = numElements * dtypeBits[dtype];
  return Number.isSafeInteger(numBits) && numBits % 8 === 0 ? numBits / 8 : undefined;
}

/**
 * Reads the header of a safetensors file and checks that its tensors fill the data exactly: no gap, no overlap, nothing
 * beyond the end, every size equal to its shape.
 * @param json - the header
 * @param dataBytes - size of the data after the header
 * @param path - for messages
 * @throws {TroupeError} `SAFETENSORS_INVALID` naming the tensor, or `JSON_INVALID`
 */
export function parseHeader(json: string, dataBytes: number, path: string): SafetensorsHeader {
  const cursor = new JsonCursor(json, `the header of ${path}`);
  const metadata = new Map<string, string>();
  const tensors = new Map<string, TensorEntry>();
  if (!json.startsWith("{")) cursor.refuse("an object");
  cursor.object((name) => {
    if (name === "__metadata__") {
      cursor.object((key) => metadata.set(key, cursor.string()));
      return;
    }
    if (tensors.size === maxNumTensors) cursor.refuse(`at most ${maxNumTensors} tensors`);
    tensors.set(name, parseEntry(cursor, name, path));
  });
  cursor.end();
  checkLayout([...tensors.values()], dataBytes, path);
  return { metadata, tensors };
}

/**
 * Lays tensors out: widest dtype first, so that each is aligned, then in the given order.
 * @returns the entries in the order of their bytes, and the header with its length in front, padded with spaces so that
 * the data begins at a multiple of 8
 * @throws {TroupeError} `SAFETENSORS_TENSOR` for a repeated name or an impossible size
 */
export function layOut(
  tensors: readonly TensorFacts[],
  metadata: Readonly<Record<string, string>>,
): { entries: TensorEntry[]; header: Uint8Array } {
  const entries: TensorEntry[] = [];
  const names = new Set(["__metadata__", "__proto__"]);
  let begin = 0;
  for (const { name, dtype, shape } of tensors.toSorted(byDType)) {
    if (names.has(name) || !name.isWellFormed()) throw unwritable(name, "well-formed names, each once");
    names.add(name);
    const sizeBytes = tensorSizeBytes(dtype, shape);
    if (sizeBytes === undefined)
      throw unwritable(name, `a size in bytes that is an integer, not ${dtype}[${shape}]`);
    entries.push({ name, dtype, shape, begin, end: begin + sizeBytes });
    begin += sizeBytes;
  }
  return { entries, header: encodeHeader(entries, metadata) };
}

function encodeHeader(
  entries: readonly TensorEntry[],
  metadata: Readonly<Record<string, string>>,
): Uint8Array {
  const members = entries.map(
    ({ name, dtype, shape, begin, end }) =>
      `${JSON.stringify(name)}:${JSON.stringify({ dtype, shape, data_offsets: [begin, end] })}`,
  );
  if (Object.keys(metadata).length > 0) members.unshift(`"__metadata__":${JSON.stringify(metadata)}`);
  const json = Buffer.from(`{${members.join(",")}}`);
  const paddedBytes = Math.ceil(json.length / 8) * 8;
  const header = Buffer.alloc(8 + paddedBytes, " ");
  header.writeBigUInt64LE(BigInt(paddedBytes));
  json.copy(header, 8);
  return header;
}

function parseEntry(cursor: JsonCursor, name: string, path: string): TensorEntry {
  let dtype: string | undefined;
  let shape: number[] | undefined;
  let offsets: number[] | undefined;
  cursor.object((key) => {
    if (key === "dtype") dtype = cursor.string();
    else if (key === "shape") shape = cursor.counts(maxRank);
    else if (key === "data_offsets") offsets = cursor.counts(2);
    else cursor.refuse('"dtype", "shape" and "data_offsets" only');
  });
  const [begin, end] = offsets ?? [];
  if (dtype === undefined || shape === undefined || begin === undefined || end === undefined)
    throw corrupt(path, `dtype, shape and two data_offsets for tensor ${JSON.stringify(name)}`, "fewer");
  if (!isDType(dtype)) {
    const known = dtypeOrder.join(", ");
    throw corrupt(
      path,
      `tensor ${JSON.stringify(name)} to have one of the dtypes ${known}`,
      JSON.stringify(dtype),
    );
  }
  const sizeBytes = tensorSizeBytes(dtype, shape);
  if (sizeBytes !== end - begin) {
    const expected = `${sizeBytes ?? "at most 2^53"} bytes for tensor ${JSON.stringify(name)}, ${dtype}[${shape}]`;
    throw corrupt(path, expected, `offsets ${begin} to ${end}`);
  }
  return { name, dtype, shape, begin, end };
}

function checkLayout(tensors: TensorEntry[], dataBytes: number, path: string): void {
  let expected = 0;
  for (const { name, begin, end } of tensors.sort((a, b) => a.begin - b.begin || a.end - b.end)) {
    if (begin !== expected) {
      const fault = begin < expected ? "an overlap" : "a hole";
      throw corrupt(
        path,
        `tensor ${JSON.stringify(name)} to begin at byte ${expected} of the data`,
        `${begin}, ${fault}`,
      );
    }
    expected = end;
  }
  if (expected === dataBytes) return;
  const fault = expected < dataBytes ? "bytes that belong to no tensor" : "a truncated file";
  throw corrupt(path, `${expected} bytes of data`, `${dataBytes}, ${fault}`);
}

function byDType(a: TensorFacts, b: TensorFacts): number {
  return dtypeOrder.indexOf(b.dtype) - dtypeOrder.indexOf(a.dtype);
}

/** Whether a name is one of safetensors' dtypes. */
export function isDType(dtype: string): dtype is SafetensorsDType {
  return Object.hasOwn(dtypeBits, dtype);
}

/** The error for a damaged file. */
export const corrupt = fileErrors(
  "SAFETENSORS_INVALID",
  "safetensors",
  "the file is damaged or foreign: fetch or save it again",
);

function unwritable(name: string, expected: string): TroupeError {
  return new TroupeError("SAFETENSORS_TENSOR", {
    where: "safetensors",
    expected,
    got: `tensor ${JSON.stringify(name)}`,
    fields: { tensor: name },
  });
}
