import { createHash } from "node:crypto";
import { TroupeError } from "../../../errors/index.ts";
import type { FileSums } from "../storage/storage.ts";
import { JsonCursor } from "./json-cursor.ts";
import { isDType, type SafetensorsDType, tensorSizeBytes } from "./safetensors-header.ts";
import { type Box, coverOnce, liesIn } from "./slices.ts";
import { type JsonObject, type JsonValue, parseValue } from "./strict-json.ts";

/** State that a run needs, besides tensors, to resume exactly. Unknown members are preserved. */
export interface TrainerState {
  /** Optimizer steps done. */
  readonly step: number;
  readonly seed: number;
  /** Samples consumed, over all ranks: the position in the data. */
  readonly samplesConsumed: number;
  /** Samples in one step; omitted if the saver does not know. */
  readonly batchSize?: number;
  /** Metadata given to the saving service. */
  readonly metadata?: JsonObject;
  /** The optimizer's progress, if it differs from the steps or the loss is scaled; otherwise null or omitted. */
  readonly optimizer?: JsonValue;
  /** Losses of the latest steps, in order, for detecting spikes; omitted if the run does not look for them. */
  readonly recentLosses?: readonly number[];
  /** The evaluations so far as `[step, value]`, if the run compares its states; else omitted. */
  readonly evaluations?: readonly (readonly [number, number])[];
  /** The run that it belongs to, see `runOf`; omitted outside a run. */
  readonly run?: JsonObject;
  /** How it is trained: optimizers, schedules, data; omitted outside a run. */
  readonly recipe?: JsonObject;
  /** For a delta: where its base model comes from, which is not saved, and how to recognize it. */
  readonly base?: JsonObject;
  /** The job's own configuration. */
  readonly job: JsonValue;
  /** The tokenizer as plain data; null if the job has none. */
  readonly tokenizer: JsonValue;
}

/** A box of a logical tensor, stored as an entry of a safetensors file of the same folder. */
export interface Slice extends Box {
  readonly file: string;
  readonly entry: string;
}

/** A tensor of the model or the optimizer, independent of the files that store it. */
export interface LogicalTensor {
  readonly dtype: SafetensorsDType;
  readonly shape: readonly number[];
  /** Together they contain each element once. */
  readonly slices: readonly Slice[];
}

/** The content of `manifest.json`. It is written last and identifies every other file of its folder by checksums. */
export interface Manifest {
  readonly state: TrainerState;
  readonly files: ReadonlyMap<string, FileSums>;
  /** By name: `<parameter>` for weights, `<kind>.<parameter>` for the optimizer's tensors. */
  readonly tensors: ReadonlyMap<string, LogicalTensor>;
}

/** The format's version, for reading and writing. */
const formatVersion = 2;
/** The name of the manifest in a checkpoint's folder. */
export const manifestName = "manifest.json";
/** Enough for some 5 TB of tensors. */
const maxManifestBytes = 1 << 26;

const unsealed = "0".repeat(64);
const maxRank = 16;
const maxNumFiles = 1 << 12;
/** The largest chunk that is read, since memory is allocated for one. */
export const maxChunkBytes = 1 << 28;

/** Whether a name from a manifest or an index is a file name that cannot lead out of its folder. */
export function isFileName(name: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(name);
}

/** Encodes a manifest, sealed with its own SHA-256. */
export function encodeManifest({ state, files, tensors }: Manifest): string {
  const members: [string, string][] = [["formatVersion", `${formatVersion}`]];
  for (const [key, value] of Object.entries(state)) {
    if (value !== undefined && !(key === "optimizer" && value === null))
      members.push([key, JSON.stringify(value)]);
  }
  members.push(["files", objectOf(files, ({ crc32c, ...file }) => ({ ...file, crc32c: [...crc32c] }))]);
  members.push(["tensors", objectOf(tensors, (tensor) => tensor)]);
  const body = members.map(([key, value]) => `  ${JSON.stringify(key)}: ${value}`).join(",\n");
  return seal(`{\n  "sha256": "${unsealed}",\n${body}\n}\n`) as string;
}

/**
 * Reads a manifest. It must be sealed, of this version, and the slices of each tensor must be in files that it lists
 * and cover it exactly once.
 * @param path - for messages
 * @throws {TroupeError} `CHECKPOINT_DAMAGED` or `JSON_INVALID`
 */
export function parseManifest(bytes: Uint8Array, path: string): Manifest {
  checkManifestSize(bytes.length, path);
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();
  if (seal(text) !== text || !Buffer.from(text).equals(bytes))
    throw damagedManifest(path, "the bytes that were saved", "others");
  const cursor = new JsonCursor(text, path);
  const state: Record<string, JsonValue> = {};
  let version: number | undefined;
  let files: Map<string, FileSums> | undefined;
  let tensors: Map<string, LogicalTensor> | undefined;
  cursor.object((key) => {
    if (key === "sha256") cursor.string();
    else if (key === "formatVersion") {
      version = cursor.count();
      if (version !== formatVersion)
        throw damagedManifest(path, `formatVersion ${formatVersion}`, `${version}`);
    } else if (key === "files") files = parseFiles(cursor);
    else if (key === "tensors") tensors = parseTensors(cursor);
    else state[key] = parseValue(cursor, 1);
  });
  cursor.end();
  if (version === undefined || files === undefined || tensors === undefined)
    throw damagedManifest(path, "formatVersion, files and tensors", "only some of them");
  checkTensors(files, tensors, path);
  return { state: checkedState(state, path), files, tensors };
}

/** Refuses a manifest that is too large to be read. @throws {TroupeError} `CHECKPOINT_DAMAGED` */
export function checkManifestSize(sizeBytes: number, path: string): void {
  if (sizeBytes > maxManifestBytes)
    throw damagedManifest(path, `at most ${maxManifestBytes} bytes`, String(sizeBytes));
}

function objectOf<T>(map: ReadonlyMap<string, T>, plain: (value: T) => unknown): string {
  const members = [...map].map(
    ([key, value]) => `    ${JSON.stringify(key)}: ${JSON.stringify(plain(value))}`,
  );
  return members.length === 0 ? "{}" : `{\n${members.join(",\n")}\n  }`;
}

/**
 * Fills in the checksum at the start of a manifest: the SHA-256 of its text with zeros in that place.
 * @returns undefined for a text that is no manifest
 */
function seal(text: string): string | undefined {
  const [, head] = /^(\{\s{0,8}"sha256": ")[0-9a-f]{64}"/.exec(text) ?? [];
  if (head === undefined) return undefined;
  const tail = text.slice(head.length + unsealed.length);
  return head + createHash("sha256").update(head).update(unsealed).update(tail).digest("hex") + tail;
}

function parseFiles(cursor: JsonCursor): Map<string, FileSums> {
  const files = new Map<string, FileSums>();
  cursor.object((name) => {
    if (files.size === maxNumFiles) cursor.refuse(`at most ${maxNumFiles} files`);
    if (!isFileName(name)) cursor.refuse(`a plain file name, not ${JSON.stringify(name.slice(0, 64))},`);
    let sizeBytes = -1;
    let chunkBytes = -1;
    let sums: number[] = [];
    let host: string | undefined;
    cursor.object((key) => {
      if (key === "sizeBytes") sizeBytes = cursor.count();
      else if (key === "host") host = cursor.string();
      else if (key === "chunkBytes") chunkBytes = cursor.count();
      else if (key === "crc32c") sums = cursor.counts(Number.POSITIVE_INFINITY);
      else cursor.refuse('"sizeBytes", "chunkBytes", "crc32c" and "host" only');
    });
    if (sizeBytes < 0 || chunkBytes < 1 || chunkBytes > maxChunkBytes)
      cursor.refuse(`sizeBytes and chunkBytes of at most ${maxChunkBytes} before this`);
    if (sums.length !== Math.ceil(sizeBytes / chunkBytes) || sums.some((sum) => sum > 0xffffffff))
      cursor.refuse(`a checksum for each chunk of ${name} before this`);
    files.set(name, { sizeBytes, chunkBytes, crc32c: Uint32Array.from(sums), ...(host && { host }) });
  });
  return files;
}

function parseTensors(cursor: JsonCursor): Map<string, LogicalTensor> {
  const tensors = new Map<string, LogicalTensor>();
  cursor.object((name) => {
    let dtype = "";
    let shape: number[] | undefined;
    const slices: Slice[] = [];
    cursor.object((key) => {
      if (key === "dtype") dtype = cursor.string();
      else if (key === "shape") shape = cursor.counts(maxRank);
      else if (key === "slices") cursor.array(() => slices.push(parseSlice(cursor)));
      else cursor.refuse('"dtype", "shape" and "slices" only');
    });
    if (shape === undefined || !isDType(dtype) || tensorSizeBytes(dtype, shape) === undefined)
      return cursor.refuse(`a dtype and a shape for ${JSON.stringify(name)} before this`);
    tensors.set(name, { dtype, shape, slices });
  });
  return tensors;
}

function parseSlice(cursor: JsonCursor): Slice {
  let file: string | undefined;
  let entry: string | undefined;
  let offset: number[] | undefined;
  let shape: number[] | undefined;
  cursor.object((key) => {
    if (key === "file") file = cursor.string();
    else if (key === "entry") entry = cursor.string();
    else if (key === "offset") offset = cursor.counts(maxRank);
    else if (key === "shape") shape = cursor.counts(maxRank);
    else cursor.refuse('"file", "entry", "offset" and "shape" only');
  });
  if (file === undefined || entry === undefined || offset === undefined || shape === undefined)
    return cursor.refuse("file, entry, offset and shape of a slice before this");
  return { file, entry, offset, shape };
}

function checkTensors(
  files: ReadonlyMap<string, FileSums>,
  tensors: ReadonlyMap<string, LogicalTensor>,
  path: string,
): void {
  for (const [name, { shape, slices }] of tensors) {
    const label = JSON.stringify(name);
    for (const slice of slices) {
      if (!files.has(slice.file)) throw damagedManifest(path, `a known file for ${label}`, slice.file);
      if (!liesIn(slice, shape)) {
        const got = `offset [${slice.offset}], shape [${slice.shape}]`;
        throw damagedManifest(path, `slices within [${shape}] for ${label}`, got);
      }
    }
    if (!coverOnce(slices, shape))
      throw damagedManifest(
        path,
        `slices that hold each element of ${label} once`,
        `${slices.length} others`,
      );
  }
}

function checkedState(state: Readonly<Record<string, JsonValue>>, path: string): TrainerState {
  for (const key of ["step", "seed", "samplesConsumed"]) {
    const value = state[key];
    if (!Number.isSafeInteger(value) || Number(value) < 0)
      throw damagedManifest(path, `a whole number as ${key}`, JSON.stringify(value) ?? "none");
  }
  const { recentLosses = [] } = state;
  if (!Array.isArray(recentLosses) || !recentLosses.every(Number.isFinite))
    throw damagedManifest(path, "numbers as recentLosses", JSON.stringify(recentLosses));
  return { ...state, job: state.job ?? null, tokenizer: state.tokenizer ?? null } as unknown as TrainerState;
}

/** The error for a manifest that contradicts itself or its folder. */
export function damagedManifest(path: string, expected: string, got: string, cause?: unknown): TroupeError {
  return new TroupeError("CHECKPOINT_DAMAGED", {
    where: "checkpoint",
    expected: `${expected} in ${path}`,
    got,
    hint: "resume from an older checkpoint, or restore the file",
    fields: { path, expected, got },
    cause,
  });
}
