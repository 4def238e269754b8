import { mkdirSync } from "node:fs";
import { open, rm } from "node:fs/promises";
import { join } from "node:path";
import { empty, type Tensor } from "troupe";
import { type Checkpoint, CheckpointDraft, LocalFolder, openCheckpoint } from "troupe/checkpoint";
import { median } from "../measure/median.ts";
import { timed } from "../measure/timed.ts";

/** A save and a load of a checkpoint, and plain transfers of as many bytes, medians in milliseconds. */
export interface FileTimes {
  readonly saveMs: number;
  readonly writeMs: number;
  readonly loadMs: number;
  readonly readMs: number;
}

const rounds = 3;
const PLAIN_BYTES = 1 << 26;

/**
 * @param path - a checkpoint, whose tensors are read and written again
 * @param progress - receives the place that the measurement has reached
 */
export async function measureFiles(
  folder: string,
  path: string,
  progress: (place: string) => void,
): Promise<FileTimes> {
  await using checkpoint = await openCheckpoint(path);
  const tensors = new Map(checkpoint.names.map((name) => [name, empty(checkpoint.entry(name).shape)]));
  const sizeBytes = [...tensors.values()].reduce((sum, tensor) => sum + 4 * tensor.numel, 0);
  const times: Record<keyof FileTimes, number[]> = { saveMs: [], writeMs: [], loadMs: [], readMs: [] };
  for (let round = 0; round < rounds; round++) {
    progress(`files, round ${round + 1} of ${rounds}`);
    times.loadMs.push(await timed(() => load(checkpoint, tensors)));
    const plain = join(folder, "plain");
    times.saveMs.push(await timed(() => save(join(folder, "again"), checkpoint, tensors)));
    times.writeMs.push(await timed(() => write(plain, sizeBytes)));
    times.readMs.push(await timed(() => read(plain, sizeBytes)));
    await rm(plain);
  }
  return {
    saveMs: median(times.saveMs),
    writeMs: median(times.writeMs),
    loadMs: median(times.loadMs),
    readMs: median(times.readMs),
  };
}

async function load(checkpoint: Checkpoint, tensors: ReadonlyMap<string, Tensor>): Promise<void> {
  for (const [name, tensor] of tensors) await checkpoint.read(name, tensor);
}

async function save(
  folder: string,
  { state, config, weights, optimizer }: Checkpoint,
  tensors: ReadonlyMap<string, Tensor>,
): Promise<void> {
  mkdirSync(folder, { recursive: true });
  const planned = (names: readonly string[]) =>
    names.map((name) => ({ name, dtype: "F32" as const, shape: tensors.get(name)?.shape ?? [] }));
  const plan = { step: state.step, config, weights: planned(weights), optimizer: planned(optimizer) };
  await using draft = await CheckpointDraft.begin(new LocalFolder(folder), plan);
  for (const name of draft.order) await draft.write(name, tensors.get(name) as Tensor);
  await draft.commit(state);
}

/** A plain write and fsync of so many bytes. */
export async function write(path: string, sizeBytes: number): Promise<void> {
  const bytes = new Uint8Array(PLAIN_BYTES).fill(1);
  await using file = await open(path, "w");
  for (let at = 0; at < sizeBytes; at += PLAIN_BYTES) await file.write(bytes.subarray(0, sizeBytes - at));
  await file.sync();
}

async function read(path: string, sizeBytes: number): Promise<void> {
  const bytes = new Uint8Array(PLAIN_BYTES).fill(1);
  await using file = await open(path, "r");
  for (let at = 0; at < sizeBytes; at += PLAIN_BYTES) await file.read(bytes, 0, PLAIN_BYTES, at);
}
