import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { TroupeError } from "../errors.ts";
import { type FileFacts, measureFile, writeDurably } from "./durable-file.ts";
import { type JsonValue, parseJsonObject } from "./strict-json.ts";

/** Where a run stands: what it needs, beside tensors, to go on as if it had never stopped. */
export interface TrainerState {
  /** Optimizer steps done. */
  readonly step: number;
  readonly seed: number;
  /** Samples trained on, over all ranks: the position of the sampler. */
  readonly samplesConsumed: number;
  /** Samples of one step; left out where that is not the saver's to say. */
  readonly batchSize?: number;
  /** How far the optimizer has come, where it is behind the steps or scales the loss; null or left out where it is not. */
  readonly optimizer?: JsonValue;
  /** The job's own configuration. */
  readonly job: JsonValue;
  /** The tokenizer as plain data; null where the job has none. */
  readonly tokenizer: JsonValue;
}

/** The content of `trainer.json`: written last, it vouches for every other file of its folder. */
export interface TrainerRecord extends TrainerState {
  readonly formatVersion: 1;
  readonly files: Readonly<Record<string, FileFacts>>;
}

/** The name of the record in a checkpoint's folder. */
export const recordName = "trainer.json";

const maxRecordBytes = 1 << 26;
const unsealed = "00000000";

/** Writes the record of `directory`; every file it names must be there already. */
export async function writeRecord(
  directory: string,
  state: TrainerState,
  files: Readonly<Record<string, FileFacts>>,
): Promise<FileFacts> {
  const { step, seed, samplesConsumed, batchSize, optimizer = null, job, tokenizer } = state;
  const record: TrainerRecord = {
    formatVersion: 1,
    step,
    seed,
    samplesConsumed,
    ...(batchSize === undefined ? {} : { batchSize }),
    ...(optimizer === null ? {} : { optimizer }),
    files,
    job,
    tokenizer,
  };
  const text = `${JSON.stringify({ crc32: unsealed, ...record }, null, 2)}\n`;
  return writeDurably(join(directory, recordName), (file) => file.append(Buffer.from(seal(text) as string)));
}

/**
 * Reads the record of `directory`.
 * @throws {TroupeError} `CHECKPOINT_DAMAGED` when it is missing, not whole or of another version
 */
export async function readRecord(directory: string): Promise<TrainerRecord> {
  const path = join(directory, recordName);
  const bytes = await readFile(path).catch((cause: NodeJS.ErrnoException) => {
    throw damaged(path, "a readable record", cause.code ?? cause.message, cause);
  });
  if (bytes.length > maxRecordBytes)
    throw damaged(path, `at most ${maxRecordBytes} bytes`, String(bytes.length));
  const text = bytes.toString();
  if (seal(text) !== text || !Buffer.from(text).equals(bytes)) {
    throw damaged(path, "the bytes that were saved", "others");
  }
  const record = parseJsonObject(text, path) as unknown as TrainerRecord;
  if (record.formatVersion !== 1) throw damaged(path, "formatVersion 1", String(record.formatVersion));
  return record;
}

/**
 * Compares files of `directory` with what its record says of them.
 * @throws {TroupeError} `CHECKPOINT_DAMAGED` naming the file
 */
export async function verifyFiles(
  directory: string,
  record: TrainerRecord,
  names: readonly string[],
): Promise<void> {
  for (const name of names) {
    const path = join(directory, name);
    const saved = record.files[name];
    if (saved === undefined) throw damaged(path, "a file that the record knows", "none");
    const found = await measureFile(path).catch((cause: NodeJS.ErrnoException) => {
      throw damaged(path, `${saved.sizeBytes} bytes`, cause.code ?? cause.message, cause);
    });
    if (found.sizeBytes !== saved.sizeBytes)
      throw damaged(path, `${saved.sizeBytes} bytes`, String(found.sizeBytes));
    if (found.crc32 !== saved.crc32) throw damaged(path, `CRC-32 ${hex(saved.crc32)}`, hex(found.crc32));
  }
}

/**
 * Fills in the checksum at the head of a record: the CRC-32 of its text with eight zeros in that place.
 * @returns undefined for a text that is no record
 */
function seal(text: string): string | undefined {
  const [, head, tail] = /^(\{\s*"crc32": ")[0-9a-f]{8}(".*)$/s.exec(text) ?? [];
  if (head === undefined || tail === undefined) return undefined;
  return head + hex(crc32(`${head}${unsealed}${tail}`)) + tail;
}

function hex(value: number): string {
  return value.toString(16).padStart(8, "0");
}

function damaged(path: string, expected: string, got: string, cause?: unknown): TroupeError {
  return new TroupeError(
    "CHECKPOINT_DAMAGED",
    `[checkpoint] expected ${expected} in ${path}: got ${got} (resume from an older checkpoint, or restore the file)`,
    { fields: { path, expected, got }, cause },
  );
}
