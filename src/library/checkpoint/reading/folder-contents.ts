import { TroupeError } from "../../../errors/index.ts";
import { maxFileBytes } from "../../../errors/untrusted/index.ts";
import { type Companions, isCompanion } from "../format/companions.ts";
import {
  checkManifestSize,
  damagedManifest,
  type Manifest,
  manifestName,
  parseManifest,
} from "../format/manifest.ts";
import { generationConfigName, type ModelTexts } from "../format/model-texts.ts";
import { SafetensorsFile } from "../format/safetensors-file.ts";
import { stepOf } from "../format/step-folder.ts";
import { type JsonObject, parseJsonObject } from "../format/strict-json.ts";
import { type FileSums, oneStretch, type StoredFolder } from "../storage/storage.ts";

const configName = "config.json";
/** A file with checksums may have as large a header as the format allows. */
const ownFile = { maxHeaderBytes: 1e8 };

/** A checkpoint's folder, checked against its manifest except for the bytes of tensors. Owns open files. */
export interface FolderContents extends ModelTexts, AsyncDisposable {
  readonly manifest: Manifest;
  readonly companions: Companions;
  /** Size of the manifest and all files that it names. */
  readonly sizeBytes: number;
  /** The files of tensors, by name. */
  readonly files: ReadonlyMap<string, SafetensorsFile>;
  /** Files of tensors that another host has. */
  readonly elsewhere: ReadonlySet<string>;
}

/** Opens every file of a checkpoint. @throws {TroupeError} `CHECKPOINT_DAMAGED` naming the file */
export async function openContents(folder: StoredFolder): Promise<FolderContents> {
  const { manifest, manifestBytes } = await readManifest(folder);
  checkName(folder, manifest);
  await using opening = new AsyncDisposableStack();
  const files = new Map<string, SafetensorsFile>();
  const elsewhere = new Set<string>();
  let config: JsonObject = {};
  let generationConfig: JsonObject | undefined;
  const companions: Record<string, Uint8Array> = {};
  for (const [name, sums] of manifest.files) {
    const path = `${folder.path}/${name}`;
    try {
      if (name.endsWith(".safetensors")) {
        files.set(name, opening.use(await openTensors(folder, name, sums)));
      } else {
        const bytes = await readBytes(folder, name, sums);
        if (isCompanion(name)) companions[name] = bytes;
        if (name === configName) config = parseJsonObject(textOf(bytes), path);
        if (name === generationConfigName) generationConfig = parseJsonObject(textOf(bytes), path);
      }
    } catch (cause) {
      if (sums.host === undefined || (cause as TroupeError).code !== "FILE_READ") throw asDamage(path, cause);
      elsewhere.add(name);
    }
  }
  checkEntries(manifest, { files, elsewhere }, folder.path);
  const owned = opening.move();
  const sizeBytes = [...manifest.files.values()].reduce((sum, file) => sum + file.sizeBytes, manifestBytes);
  return {
    manifest,
    sizeBytes,
    config,
    generationConfig,
    companions,
    files,
    elsewhere,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/**
 * Reads the manifest of a folder.
 * @throws {TroupeError} `CHECKPOINT_DAMAGED` when it is missing, incomplete or of another version
 */
async function readManifest(
  folder: StoredFolder,
): Promise<{ readonly manifest: Manifest; readonly manifestBytes: number }> {
  const path = `${folder.path}/${manifestName}`;
  try {
    await using file = await folder.openFile(manifestName);
    checkManifestSize(file.sizeBytes, path);
    const bytes = new Uint8Array(file.sizeBytes);
    await file.read(oneStretch(0, bytes.length), bytes, { what: "the manifest" });
    return { manifest: parseManifest(bytes, path), manifestBytes: bytes.length };
  } catch (cause) {
    throw asDamage(path, cause);
  }
}

/** Refuses a folder whose name has another step than its manifest: it was renamed. */
function checkName({ name, path }: StoredFolder, { state }: Manifest): void {
  const step = stepOf(name);
  if (step === undefined || step === state.step) return;
  throw damagedManifest(
    `${path}/${manifestName}`,
    `the state of step ${step}, as its folder is named`,
    `that of step ${state.step}`,
  );
}

async function openTensors(folder: StoredFolder, name: string, sums: FileSums): Promise<SafetensorsFile> {
  const file = await folder.openFile(name);
  if (file.sizeBytes !== sums.sizeBytes) {
    await file[Symbol.asyncDispose]();
    throw damagedManifest(file.path, `${sums.sizeBytes} bytes`, String(file.sizeBytes));
  }
  return SafetensorsFile.from(file, { ...ownFile, sums });
}

async function readBytes(folder: StoredFolder, name: string, sums: FileSums): Promise<Uint8Array> {
  await using file = await folder.openFile(name);
  if (file.sizeBytes !== sums.sizeBytes || sums.sizeBytes > maxFileBytes.tokenizer)
    throw damagedManifest(file.path, `${sums.sizeBytes} bytes`, String(file.sizeBytes));
  const bytes = new Uint8Array(file.sizeBytes);
  await file.read(oneStretch(0, bytes.length), bytes, { sums, what: name });
  return bytes;
}

const textOf = (bytes: Uint8Array): string => Buffer.from(bytes.buffer).toString();

/** Checks that the manifest's slices are entries of their files, with that dtype and shape. */
function checkEntries(
  manifest: Manifest,
  { files, elsewhere }: Pick<FolderContents, "files" | "elsewhere">,
  path: string,
): void {
  for (const [name, { dtype, slices }] of manifest.tensors) {
    for (const slice of slices) {
      if (elsewhere.has(slice.file)) continue;
      const found = files.get(slice.file)?.tensors.get(slice.entry);
      if (found?.dtype === dtype && found.shape.join() === slice.shape.join()) continue;
      const got = found === undefined ? "none" : `${found.dtype}[${found.shape}]`;
      throw damagedManifest(
        `${path}/${slice.file}`,
        `an entry ${JSON.stringify(slice.entry)} of ${dtype}[${slice.shape}] for tensor ${JSON.stringify(name)}`,
        got,
      );
    }
  }
}

/** Errors of a store, or of an actor that reads for another host: they cannot be reached. */
const UNREACHED: readonly string[] = ["S3_FAILED", "ACTOR_DOWN", "ASK_TIMEOUT", "STOP_REQUESTED"];

/** Whether an error is one of a checkpoint, rather than of something that cannot be reached, where it may be intact. */
export function isOfCheckpoint(error: unknown): error is TroupeError {
  return error instanceof TroupeError && !UNREACHED.includes(error.code);
}

function asDamage(path: string, cause: unknown): TroupeError {
  if (!isOfCheckpoint(cause)) throw cause;
  if (cause.code === "CHECKPOINT_DAMAGED") return cause;
  return damagedManifest(path, "a complete file", String(cause.fields.reason ?? cause.message), cause);
}
