import { readdir, readFile, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { TroupeError } from "../errors.ts";
import { commitDirectory, replacedName } from "./commit-directory.ts";
import { type FileFacts, replaceDurably, writeDurably } from "./durable-file.ts";
import { SafetensorsFile } from "./safetensors-file.ts";
import { type TensorSource, writeSafetensors } from "./safetensors-writer.ts";
import { type JsonObject, parseJsonObject } from "./strict-json.ts";
import {
  readRecord,
  recordName,
  type TrainerRecord,
  type TrainerState,
  verifyFiles,
  writeRecord,
} from "./trainer-record.ts";

/** Everything a checkpoint keeps. */
export interface CheckpointContent {
  readonly state: TrainerState;
  /** The model's configuration, as Hugging Face's `config.json`. */
  readonly config: JsonObject;
  /** The parameters, by their Hugging Face names. */
  readonly weights: readonly TensorSource[];
  /** The optimizer's moments, named `exp_avg.<parameter>` and `exp_avg_sq.<parameter>`. */
  readonly optimizer: readonly TensorSource[];
}

const weightsName = "model.safetensors";
const optimizerName = "optimizer.safetensors";
const configName = "config.json";
const latestName = "latest";
/** A file whose checksum was compared may have as large a header as the format allows. */
const ownFile = { maxHeaderBytes: 1e8 };

/** The folder of a step below the folder of a run: `step-000500`. */
export function stepFolder(step: number): string {
  return `step-${String(step).padStart(6, "0")}`;
}

/**
 * Saves a checkpoint into a folder of its own below `directory`, then lets the file `latest` name it. It is either
 * there whole, on the disk, or not at all; what was saved before is kept whatever happens. The folder is also a
 * Hugging Face model folder. One process at a time saves into `directory`, and calls `sweepLeftovers` before.
 * @returns the folder and the bytes it takes
 * @throws {TroupeError} `CHECKPOINT_SAVE_FAILED` with the first cause: the disk is full or failing, or a source threw
 */
export async function writeCheckpoint(
  directory: string,
  content: CheckpointContent,
): Promise<{ path: string; sizeBytes: number }> {
  const name = stepFolder(content.state.step);
  const path = join(directory, name);
  try {
    let sizeBytes = 0;
    await commitDirectory(directory, name, async (folder) => {
      const files = {
        [weightsName]: await writeSafetensors(join(folder, weightsName), content.weights),
        [optimizerName]: await writeSafetensors(join(folder, optimizerName), content.optimizer),
        [configName]: await writeConfig(join(folder, configName), content.config),
      };
      const record = await writeRecord(folder, content.state, files);
      sizeBytes = [...Object.values(files), record].reduce((sum, file) => sum + file.sizeBytes, 0);
    });
    await replaceDurably(join(directory, latestName), (file) => file.append(Buffer.from(`${name}\n`)));
    return { path, sizeBytes };
  } catch (cause) {
    throw saveFailed(path, content.state.step, cause);
  }
}

/** A checkpoint that was found whole. Owns two open files until `close`. */
export interface Checkpoint extends AsyncDisposable {
  readonly path: string;
  readonly state: TrainerState;
  readonly config: JsonObject;
  readonly weights: SafetensorsFile;
  readonly optimizer: SafetensorsFile;
  /** Newer checkpoints that were passed over, and why. */
  readonly passedOver: readonly TroupeError[];
  close(): Promise<void>;
}

/**
 * Opens a checkpoint once every byte of it was compared with its record.
 * @param path - the folder of a checkpoint, or the folder of a run: then the checkpoint that `latest` names or, where
 * that is damaged, the one of the highest step that is whole
 * @throws {TroupeError} `CHECKPOINT_MISSING` when there is none, `CHECKPOINT_DAMAGED` when none is whole
 */
export async function readCheckpoint(path: string, except: readonly string[] = []): Promise<Checkpoint> {
  const candidates = (await candidatesIn(path)).filter((candidate) => !except.includes(candidate));
  const passedOver: TroupeError[] = [];
  for (const candidate of candidates) {
    try {
      return await openWhole(candidate, passedOver);
    } catch (error) {
      if (!(error instanceof TroupeError)) throw error;
      passedOver.push(error);
    }
  }
  const [first] = passedOver;
  if (first !== undefined && passedOver.length === 1) throw first;
  if (first !== undefined) throw noneWhole(path, passedOver);
  throw new TroupeError(
    "CHECKPOINT_MISSING",
    `[checkpoint] expected a checkpoint in ${path}: got none (give the folder of a run, or of one of its steps)`,
    { fields: { path } },
  );
}

async function openWhole(path: string, passedOver: readonly TroupeError[]): Promise<Checkpoint> {
  const record = await readRecord(path);
  await verifyFiles(path, record, [weightsName, optimizerName, configName]);
  const configPath = join(path, configName);
  const config = parseJsonObject(await readFile(configPath, "utf8"), configPath);
  await using opening = new AsyncDisposableStack();
  const weights = opening.use(await SafetensorsFile.open(join(path, weightsName), ownFile));
  const optimizer = opening.use(await SafetensorsFile.open(join(path, optimizerName), ownFile));
  const open = opening.move();
  const close = () => open.disposeAsync();
  return {
    path,
    state: stateOf(record),
    config,
    weights,
    optimizer,
    passedOver,
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** Folders that may hold a checkpoint, the one to be preferred first. */
async function candidatesIn(path: string): Promise<string[]> {
  if (await isFile(join(path, recordName))) return [path];
  const entries = await readdir(path).catch(() => [] as string[]);
  const steps = entries.flatMap((entry) => {
    // Put aside for a new one of the same step that may not have arrived: as good as it was.
    const name = replacedName(entry) ?? entry;
    const match = /^step-(\d+)$/.exec(name);
    return match === null ? [] : [{ entry, step: Number(match[1]), aside: name !== entry }];
  });
  steps.sort((a, b) => b.step - a.step || Number(a.aside) - Number(b.aside));
  const latest = (await readFile(join(path, latestName), "utf8").catch(() => "")).trim();
  const ordered = [
    ...steps.filter(({ entry }) => entry === latest),
    ...steps.filter(({ entry }) => entry !== latest),
  ];
  return ordered.map(({ entry }) => join(path, entry));
}

function stateOf(record: TrainerRecord): TrainerState {
  const { step, seed, samplesConsumed, batchSize, optimizer, job, tokenizer } = record;
  return {
    step,
    seed,
    samplesConsumed,
    ...(batchSize === undefined ? {} : { batchSize }),
    ...(optimizer === undefined ? {} : { optimizer }),
    job,
    tokenizer,
  };
}

function writeConfig(path: string, config: JsonObject): Promise<FileFacts> {
  return writeDurably(path, (file) => file.append(Buffer.from(`${JSON.stringify(config, null, 2)}\n`)));
}

async function isFile(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isFile(),
    () => false,
  );
}

function saveFailed(path: string, step: number, cause: unknown): TroupeError {
  const { message } = cause as Error;
  return new TroupeError(
    "CHECKPOINT_SAVE_FAILED",
    `[checkpoint] expected to save ${path}: got "${message}" (free space or mend the disk; what was saved before is kept)`,
    { fields: { path, step, errno: (cause as NodeJS.ErrnoException).code }, cause },
  );
}

function noneWhole(path: string, passedOver: readonly TroupeError[]): TroupeError {
  const names = passedOver.map((error) => basename(String(error.fields.path)));
  return new TroupeError(
    "CHECKPOINT_DAMAGED",
    `[checkpoint] expected one whole checkpoint in ${path}: got ${passedOver.length} damaged ones, the first because ` +
      `${passedOver[0]?.message} (restore one of ${names.join(", ")} from a copy)`,
    { fields: { path, causes: passedOver.map((error) => error.message) }, cause: passedOver[0] },
  );
}
