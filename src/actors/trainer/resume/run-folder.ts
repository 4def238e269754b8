import { randomUUID } from "node:crypto";
import { resolve } from "node:path";
import {
  type CheckpointStorage,
  type OwnerRecord,
  openStorage,
  ownerOf,
  placeOf,
  putOwner,
  type RunEnd,
  type RunRecord,
  refuseOthersFiles,
  runOf,
  type StorageLock,
  takeEmpty,
  takeOver,
} from "../../../library/checkpoint/index.ts";
import { optionError } from "../option-error.ts";
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
  readonly #storage: CheckpointStorage;
  readonly #lock: StorageLock;
  /** Whether another run's checkpoints are still to be removed. */
  #isToEmpty: boolean;
  #isEndTold = false;

  private constructor(
    storage: CheckpointStorage,
    lock: StorageLock,
    { record, isToEmpty }: { readonly record: RunRecord; readonly isToEmpty: boolean },
  ) {
    this.record = record;
    this.#storage = storage;
    this.#lock = lock;
    this.#isToEmpty = isToEmpty;
  }

  /**
   * Nothing is removed yet: that a run may have the place is known before it is known to work.
   * @throws {TroupeError} `CHECKPOINT_TAKEN` where it holds another run's checkpoints, `CHECKPOINT_LOCKED` where another
   *   process writes there, `CHECKPOINT_DIRECTORY` where nothing can be written; `OPTION`
   */
  static async take(options: RunFolderOptions): Promise<RunFolder> {
    const storage = await openStorage(options.directory);
    const lock = await storage.lock(`a run of ${options.job}`);
    try {
      return new RunFolder(storage, lock, await claim(storage, options));
    } catch (error) {
      await lock[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** The word of its lock. */
  get hold(): string {
    return this.#lock.hold;
  }

  /** Removes what is another run's, once, where that was asked for. To be called before the first step. */
  async empty(): Promise<void> {
    if (!this.#isToEmpty) return;
    await takeOver(this.#storage, this.record);
    this.#isToEmpty = false;
  }

  /** Says how the run has ended, once, unless the place is not its own yet or can be written no more. */
  async end(how: RunEnd["how"]): Promise<void> {
    if (this.#isToEmpty || this.#isEndTold) return;
    this.#isEndTold = true;
    const at = new Date().toISOString();
    // Who takes the place away, or fills the disk, is told by the saves.
    await putOwner(this.#storage, this.record, { how, at }).catch(() => {});
  }

  /** Gives the place back, once nobody writes there any more; a run that has not ended otherwise has failed. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.end("failed");
    await this.#lock[Symbol.asyncDispose]();
  }
}

async function claim(
  storage: CheckpointStorage,
  { directory, job, start, resume, overwrite }: RunFolderOptions,
): Promise<{ readonly record: RunRecord; readonly isToEmpty: boolean }> {
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
    const { end: _, ...record }: OwnerRecord = before ?? owner ?? fresh;
    await putOwner(storage, record);
    return { record, isToEmpty: false };
  }
  const record = { ...fresh, ...(before && { parent: before.id }) };
  await (overwrite ? refuseOthersFiles(storage) : takeEmpty(storage, record));
  return { record, isToEmpty: overwrite };
}

/** Where the checkpoints lie that a path names, or one of which it names. */
async function locationOf(path: string): Promise<string> {
  const { storage } = await placeOf(path);
  return placeName(storage.location);
}

function placeName(location: string): string {
  return location.startsWith("s3://") ? location.replace(/\/+$/, "") : resolve(location);
}
