import { randomUUID } from "node:crypto";
import { resolve } from "node:path";
import {
  type CheckpointStorage,
  openStorage,
  ownerOf,
  placeOf,
  putOwner,
  type RunRecord,
  runOf,
  type StorageLock,
  takeEmpty,
  takeOver,
} from "../checkpoint/index.ts";
import { optionError } from "./option-error.ts";
import type { Start } from "./start.ts";

/** Whose folder it is to be. */
export interface RunFolderOptions {
  readonly directory: string;
  /** The job, as a person would name it. */
  readonly job: string;
  readonly start: Start;
  /** What the run goes on from, where that is a checkpoint or a folder of them. */
  readonly resume: string | undefined;
  /** Whether checkpoints of another run are removed. */
  readonly overwrite: boolean;
}

/**
 * The place of a run's checkpoints, which is this run's alone: locked while it lasts, and marked as its own. A run that goes on
 * from a checkpoint of the same place is the run that it was.
 */
export class RunFolder implements AsyncDisposable {
  readonly record: RunRecord;
  readonly #lock: StorageLock;

  private constructor(record: RunRecord, lock: StorageLock) {
    this.record = record;
    this.#lock = lock;
  }

  /**
   * @throws {TroupeError} `CHECKPOINT_TAKEN` where it holds another run's checkpoints, `CHECKPOINT_LOCKED` where another
   *   process writes there, `CHECKPOINT_DIRECTORY` where nothing can be written; `OPTION`
   */
  static async take(options: RunFolderOptions): Promise<RunFolder> {
    const storage = await openStorage(options.directory);
    const lock = await storage.lock(`a run of ${options.job}`);
    try {
      return new RunFolder(await claim(storage, options), lock);
    } catch (error) {
      await lock[Symbol.asyncDispose]();
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#lock[Symbol.asyncDispose]();
  }
}

async function claim(
  storage: CheckpointStorage,
  { directory, job, start, resume, overwrite }: RunFolderOptions,
): Promise<RunRecord> {
  const before = start.resumed && runOf(start.resumed.state);
  const owner = await ownerOf(storage);
  const fresh = { id: randomUUID(), job, startedAt: new Date().toISOString() };
  const isInPlace = resume !== undefined && (await locationOf(resume)) === placeName(directory);
  if (isInPlace && (before === undefined || owner === undefined || before.id === owner.id)) {
    if (overwrite) {
      const hint = "leave one of them out";
      throw optionError(
        "checkpoint.overwrite",
        "left out where a run goes on in its own folder",
        overwrite,
        hint,
      );
    }
    const record = before ?? owner ?? fresh;
    if (owner === undefined) await putOwner(storage, record);
    return record;
  }
  const record = { ...fresh, ...(before && { parent: before.id }) };
  await (overwrite ? takeOver : takeEmpty)(storage, record);
  return record;
}

/** Where the checkpoints lie that a path names, or one of which it names. */
async function locationOf(path: string): Promise<string> {
  const { storage } = await placeOf(path);
  return placeName(storage.location);
}

function placeName(location: string): string {
  return location.startsWith("s3://") ? location.replace(/\/+$/, "") : resolve(location);
}
