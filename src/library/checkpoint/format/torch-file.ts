import { numelOf } from "../../../compute/tensor/index.ts";
import { type Bytes, layInto } from "../storage/bytes.ts";
import type { StoredFile } from "../storage/storage.ts";
import { SummedReader } from "../storage/summed-file.ts";
import {
  PickleCut,
  type Pickled,
  PickledCall,
  PickledGlobal,
  PickledReference,
  readPickle,
  torchFileError,
} from "./pickle.ts";
import { type SafetensorsDType, type TensorEntry, tensorSizeBytes } from "./safetensors-header.ts";
import { TensorFile, type TensorPart } from "./tensor-file.ts";
import { bytesAt, type ZipEntry, zipEntries } from "./zip-entries.ts";

/** Dtypes of storages, by the names that `torch.save` gives them. */
// biome-ignore format: a list
const storageDTypes: Readonly<Record<string, SafetensorsDType>> = {
  "torch.DoubleStorage": "F64", "torch.FloatStorage": "F32", "torch.HalfStorage": "F16",
  "torch.BFloat16Storage": "BF16", "torch.LongStorage": "I64", "torch.IntStorage": "I32",
  "torch.ShortStorage": "I16", "torch.CharStorage": "I8", "torch.ByteStorage": "U8",
  "torch.BoolStorage": "BOOL",
};

const TENSOR = "torch._utils._rebuild_tensor_v2";
const PARAMETER = "torch._utils._rebuild_parameter";

/** Objects that training programs store besides a model: settings, counters, states of generators. They are ignored. */
const inert =
  /^(argparse\.Namespace|_codecs\.encode|torch\.(device|Size|[a-z]+\d+|bool)|numpy\.(dtype|ndarray|_?core\.multiarray\.(scalar|_reconstruct))|fairseq\.data\.dictionary\.Dictionary)$/;

const known = (name: string) =>
  Object.hasOwn(storageDTypes, name) || name === TENSOR || name === PARAMETER || inert.test(name);

/** First and second number in files of `torch.save` before PyTorch 1.6. */
const LEGACY_MAGIC = 0x1950a86a20f9469cfc6cn;
const LEGACY_VERSION = 1001;
const MAX_PICKLE_BYTES = 1 << 26;
const MAX_RANK = 16;
const MAX_DEPTH = 16;
/**
 * Limits on the entries of all dictionaries, by the size of the file. One dictionary may occur in several others, so a
 * small file could have very many entries; the description of a tensor takes a hundred bytes or more.
 */
const [MAX_NUM_ENTRIES, BYTES_PER_ENTRY, FREE_ENTRIES] = [1_000_000, 16, 10_000];

/** A tensor in a storage of the file. */
interface StoredTensor extends TensorEntry {
  /** Elements from one index to the next, for each dim; undefined for row-major tensors. */
  readonly strides: readonly number[] | undefined;
}

/** Finds the bytes of a storage in the file. */
type Storages = (key: string, numel: number, itemBytes: number) => ZipEntry;

/**
 * A file of `torch.save`, as an archive or in the format before PyTorch 1.6, open for reading. Its pickle is read as
 * data: no name in it is looked up, imported or called, and a file that names anything except tensors, plain values and
 * a few known settings is refused. Tensors are named by the keys of their dictionaries, joined by dots; those in lists
 * are left out. Owns the file until `close`.
 */
export class TorchFile extends TensorFile {
  readonly tensors: ReadonlyMap<string, StoredTensor>;
  /** Numbers and strings of the outermost dictionary, such as Megatron-LM's `checkpoint_version`. */
  readonly values: ReadonlyMap<string, number | string>;
  /**
   * Keys of the outermost dictionary whose values are dictionaries: "model" in a training program's file; none in a model's own.
   */
  readonly parts: ReadonlySet<string>;

  private constructor(file: StoredFile, root: Pickled, storages: Storages) {
    super(file, "torch file");
    const stored = new Map<string, StoredTensor>();
    let numEntries = 0;
    const mostEntries = Math.min(
      MAX_NUM_ENTRIES,
      FREE_ENTRIES + Math.floor(file.sizeBytes / BYTES_PER_ENTRY),
    );
    const count = () => {
      if (++numEntries > mostEntries)
        throw torchFileError(
          file.path,
          `at most ${mostEntries} entries`,
          "more: dictionaries within each other",
        );
    };
    collect(file.path, root, [], count, (name, call) => {
      stored.set(name, tensorOf(file.path, name, call, storages));
    });
    this.tensors = stored;
    const outermost = root instanceof Map ? [...root] : [];
    const values = new Map<string, number | string>();
    const parts = new Set<string>();
    for (const [key, value] of outermost) {
      if (typeof key !== "string") continue;
      if (typeof value === "number" || typeof value === "string") values.set(key, value);
      if (value instanceof Map) parts.add(key);
    }
    this.values = values;
    this.parts = parts;
  }

  /**
   * Opens a file and reads its pickle; tensors are read on demand.
   * @throws {TroupeError} `TORCH_FILE` for a file that is damaged, foreign, or would have to run code; the file system's errors
   */
  static async open(path: string): Promise<TorchFile> {
    const file = await SummedReader.open(path);
    try {
      return await TorchFile.#read(file);
    } catch (error) {
      await file[Symbol.asyncDispose]();
      if (error instanceof PickleCut)
        throw torchFileError(path, "a complete pickle", "only its beginning: the file was cut");
      throw error;
    }
  }

  static async #read(file: StoredFile): Promise<TorchFile> {
    const start = await bytesAt(file, 0, Math.min(4, file.sizeBytes), "its description");
    if (new TextDecoder("latin1").decode(start) !== "PK\x03\x04") return TorchFile.#readLegacy(file);
    const { path } = file;
    const entries = await zipEntries(file);
    const pickles = [...entries.keys()].filter((name) => /^[^/]+\/data\.pkl$/.test(name));
    const [pickle = ""] = pickles;
    if (pickles.length !== 1)
      throw torchFileError(path, "one data.pkl", `${pickles.length}, a foreign archive`);
    const folder = pickle.slice(0, -"data.pkl".length);
    const order = entries.get(`${folder}byteorder`);
    if (order !== undefined) {
      const said = new TextDecoder().decode(
        await bytesAt(file, order.begin, Math.min(order.sizeBytes, 16), "its description"),
      );
      if (said !== "little") throw torchFileError(path, "numbers in little-endian order", said);
    }
    const { begin, sizeBytes } = entries.get(pickle) as ZipEntry;
    if (sizeBytes > MAX_PICKLE_BYTES)
      throw torchFileError(path, "a description of a model", `${sizeBytes} bytes of it`);
    const { value } = readPickle(await bytesAt(file, begin, sizeBytes, "its description"), 0, {
      path,
      names: known,
    });
    return new TorchFile(file, value, (key, numel, itemBytes) => {
      const entry = entries.get(`${folder}data/${key}`);
      if (entry !== undefined && entry.sizeBytes >= numel * itemBytes) return entry;
      throw torchFileError(
        path,
        `${numel * itemBytes} bytes in data/${key}`,
        `${entry?.sizeBytes ?? "none"}`,
      );
    });
  }

  /**
   * Reads the format before 1.6: five pickles, then each storage after its number of elements, in the order of the last pickle.
   */
  static async #readLegacy(file: StoredFile): Promise<TorchFile> {
    const { path, sizeBytes } = file;
    const { root, keys, end } = await legacyHead(file);
    const sizes = new Map<string, { readonly numel: number; readonly itemBytes: number }>();
    collectReferences(root, (reference) => {
      const { key, numel, dtype } = storageOf(path, reference);
      sizes.set(key, { numel, itemBytes: tensorSizeBytes(dtype, [1]) as number });
    });
    const places = new Map<string, ZipEntry>();
    let at = end;
    for (const key of keys) {
      const { numel, itemBytes } = sizes.get(key) ?? { numel: 0, itemBytes: 1 };
      const entry = { begin: at + 8, sizeBytes: numel * itemBytes };
      if (!sizes.has(key) || entry.begin + entry.sizeBytes > sizeBytes)
        throw torchFileError(path, `all of storage ${key}`, "a file that was cut");
      places.set(key, entry);
      at = entry.begin + entry.sizeBytes;
    }
    const counts = new Uint8Array(8 * places.size);
    const stretches = [...places.values()].flatMap(({ begin }, index) => [begin - 8, 8 * index, 8]);
    await file.read(Float64Array.from(stretches), counts, { what: "the sizes of storages" });
    const view = new DataView(counts.buffer);
    for (const [index, key] of [...places.keys()].entries())
      if (Number(view.getBigInt64(8 * index, true)) !== sizes.get(key)?.numel)
        throw torchFileError(path, `storage ${key} of ${sizes.get(key)?.numel} elements`, "another size");
    return new TorchFile(file, root, (key) => {
      const place = places.get(key);
      if (place === undefined) throw torchFileError(path, `storage ${key}`, "none");
      return place;
    });
  }

  /** A tensor that is not row-major is read completely. */
  override async readStretches(name: string, stretches: Float64Array, into: Bytes): Promise<number> {
    const inFile = this.inFile({ name, stretches }, this.entry(name).begin);
    const tensor = this.tensors.get(name) as StoredTensor;
    const { begin, end, strides } = tensor;
    if (strides === undefined)
      return this.file.read(inFile, into, { what: `tensor ${JSON.stringify(name)}` });
    const all = gathered(await bytesAt(this.file, begin, end - begin, "its description"), tensor, strides);
    for (let i = 0; i < stretches.length; i += 3) {
      const [first = 0, target = 0, size = 0] = stretches.subarray(i, i + 3);
      layInto(all.subarray(first, first + size), into, target);
    }
    return end - begin;
  }

  override async readParts(parts: readonly TensorPart[], into: Bytes): Promise<number> {
    let numBytes = 0;
    for (const { name, stretches } of parts) numBytes += await this.readStretches(name, stretches, into);
    return numBytes;
  }
}

/** Finds each tensor in nested dictionaries. A dictionary that contains itself ends at a depth that no model has. */
function collect(
  path: string,
  value: Pickled,
  keys: readonly string[],
  count: () => void,
  tell: (name: string, call: PickledCall) => void,
): void {
  if (value instanceof PickledCall) {
    const made = value.name === PARAMETER ? value.args[0] : value;
    // PyTorch never nests a parameter in another, or in itself.
    if (made instanceof PickledCall && made.name === PARAMETER)
      throw torchFileError(path, `a parameter ${keys.join(".")} of a tensor`, "one of a parameter");
    if (made instanceof PickledCall && made.name === TENSOR) tell(keys.join("."), made);
    return;
  }
  if (!(value instanceof Map) || keys.length >= MAX_DEPTH) return;
  for (const [key, inner] of value) {
    count();
    if (typeof key === "string" || typeof key === "number")
      collect(path, inner, [...keys, String(key)], count, tell);
  }
}

/** Finds every reference to a storage; visits each value once. */
function collectReferences(root: Pickled, tell: (reference: PickledReference) => void): void {
  const seen = new Set<Pickled>();
  const open: Pickled[] = [root];
  for (let value = open.pop(); value !== undefined; value = open.pop()) {
    if (value === null || typeof value !== "object" || seen.has(value)) continue;
    seen.add(value);
    if (value instanceof PickledReference) tell(value);
    else if (value instanceof Map) for (const pair of value) open.push(...pair);
    else if (value instanceof PickledCall) for (const item of value.args) open.push(item);
    else if (Array.isArray(value)) for (const item of value) open.push(item);
  }
}

function storageOf(
  path: string,
  { id }: PickledReference,
): { readonly key: string; readonly numel: number; readonly dtype: SafetensorsDType } {
  const [word, kind, key, , numel] = Array.isArray(id) ? id : [];
  const isKnown = kind instanceof PickledGlobal && Object.hasOwn(storageDTypes, kind.name);
  const dtype = isKnown ? storageDTypes[kind.name] : undefined;
  if (word === "storage" && dtype !== undefined && typeof key === "string" && isCount(numel))
    return { key, numel, dtype };
  throw torchFileError(path, "a storage's kind, key and size", "something else");
}

function tensorOf(path: string, name: string, { args }: PickledCall, storages: Storages): StoredTensor {
  const [reference, offset, shape, strides] = args;
  const isList = (value: Pickled | undefined): value is number[] =>
    Array.isArray(value) && value.length <= MAX_RANK && value.every(isCount);
  if (!(reference instanceof PickledReference && isCount(offset) && isList(shape) && isList(strides)))
    throw torchFileError(path, `a tensor ${name} with storage, offset, sizes and strides`, "something else");
  const { key, numel, dtype } = storageOf(path, reference);
  const itemBytes = tensorSizeBytes(dtype, [1]) as number;
  const isEmpty = shape.includes(0);
  const last = isEmpty ? 0 : shape.reduce((sum, size, dim) => sum + (size - 1) * (strides[dim] ?? 0), 1);
  const count = numelOf(shape);
  // Strides of 0 repeat elements and could take more memory than the file has.
  if (strides.length !== shape.length || !(offset + last <= numel) || !(count <= numel))
    throw torchFileError(
      path,
      `a tensor ${name} within the ${numel} elements of its storage`,
      `[${shape}] from ${offset}`,
    );
  const begin = storages(key, numel, itemBytes).begin + offset * itemBytes;
  const rowMajor = isEmpty || isRowMajor(shape, strides);
  return {
    name,
    dtype,
    shape,
    begin,
    end: begin + last * itemBytes,
    strides: rowMajor ? undefined : strides,
  };
}

function isRowMajor(shape: readonly number[], strides: readonly number[]): boolean {
  let next = 1;
  for (let dim = shape.length - 1; dim >= 0; dim--) {
    if (shape[dim] !== 1 && strides[dim] !== next) return false;
    next *= shape[dim] ?? 1;
  }
  return true;
}

/** Copies a tensor's elements in row-major order. @param bytes - from its first element to its last */
function gathered(bytes: Uint8Array, { dtype, shape }: TensorEntry, strides: readonly number[]): Uint8Array {
  const item = tensorSizeBytes(dtype, [1]) as number;
  const result = new Uint8Array(tensorSizeBytes(dtype, shape) as number);
  const index = shape.map(() => 0);
  let from = 0;
  for (let to = 0; to < result.length; to += item) {
    for (let byte = 0; byte < item; byte++) result[to + byte] = bytes[from * item + byte] ?? 0;
    for (let dim = shape.length - 1; dim >= 0; dim--) {
      const [size = 1, stride = 0] = [shape[dim], strides[dim]];
      from += stride;
      index[dim] = (index[dim] ?? 0) + 1;
      if (index[dim] !== size) break;
      from -= size * stride;
      index[dim] = 0;
    }
  }
  return result;
}

async function legacyHead(
  file: StoredFile,
): Promise<{ readonly root: Pickled; readonly keys: readonly string[]; readonly end: number }> {
  const { path, sizeBytes } = file;
  for (let size = Math.min(1 << 20, sizeBytes); ; size = Math.min(8 * size, sizeBytes)) {
    const bytes = await bytesAt(file, 0, size, "its description");
    try {
      return parseLegacyHead(bytes, path);
    } catch (error) {
      if (!(error instanceof PickleCut) || size === sizeBytes || size >= MAX_PICKLE_BYTES) throw error;
    }
  }
}

function parseLegacyHead(bytes: Uint8Array, path: string) {
  const rules = { path, names: known };
  if (bytes[0] !== 0x80) throw torchFileError(path, "what torch.save writes", "another file");
  let end = 0;
  const next = () => {
    const { value, end: after } = readPickle(bytes, end, rules);
    end = after;
    return value;
  };
  const [magic, version, system] = [next(), next(), next()];
  if (magic !== LEGACY_MAGIC || version !== LEGACY_VERSION)
    throw torchFileError(path, "what torch.save writes", "another pickle");
  if (!(system instanceof Map) || system.get("little_endian") !== true)
    throw torchFileError(path, "numbers in little-endian order", "another order");
  const root = next();
  const keys = next();
  if (!Array.isArray(keys) || !keys.every((key): key is string => typeof key === "string"))
    throw torchFileError(path, "the keys of its storages", "something else");
  return { root, keys, end };
}

function isCount(value: Pickled | undefined): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}
