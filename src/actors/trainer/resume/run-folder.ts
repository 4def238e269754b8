import { randomUUID } from "node:crypto";
import { resolve } from "node:path";
import * as checkpoints from "../../../library/checkpoint/index.ts";
import { optionError } from "../option-error.ts";
import type { Start } from "./start.ts";

/** Options of {@link RunFolder.take}. */
export interface RunFolderOptions {
  readonly directory: string;
  /** The job's name for people. */
  readonly job: string;
  readonly start: Start;
  /** The checkpoint, or folder of checkpoints, that the run resumes from, if any. */
  readonly resume: string | undefined;
  /** Whether checkpoints of another run are removed. */
  readonly overwrite: boolean;
}

/** A run's checkpoint folder, locked while the run lasts and marked with its id, which a run that resumes there keeps. */
export class RunFolder implements AsyncDisposable {
  readonly record: checkpoints.RunRecord;
  readonly #storage: checkpoints.CheckpointStorage;
  readonly #lock: checkpoints.StorageLock;
  /** Whether checkpoints of another run are still to be removed. */
  #isToEmpty: boolean;
  #isEndReported = false;

  private constructor(
    storage: checkpoints.CheckpointStorage,
    lock: checkpoints.StorageLock,
    { record, isToEmpty }: { readonly record: checkpoints.RunRecord; readonly isToEmpty: boolean },
  ) {
    this.record = record;
    this.#storage = storage;
    this.#lock = lock;
    this.#isToEmpty = isToEmpty;
  }

  /**
   * Locks the folder and checks that the run may use it. Removes nothing yet, since the run is not known to work.
   * @throws {TroupeError} `CHECKPOINT_TAKEN` where it has another run's checkpoints, `CHECKPOINT_LOCKED` where another
   * process writes there, `CHECKPOINT_DIRECTORY` where it cannot be written; `OPTION`
   */
  static async take(options: RunFolderOptions): Promise<RunFolder> {
    const storage = await checkpoints.openStorage(options.directory);
    const lock = await storage.lock(`a run of ${options.job}`);
    try {
      return new RunFolder(storage, lock, await claim(storage, options));
    } catch (error) {
      await lock[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Token of the lock. */
  get hold(): string {
    return this.#lock.hold;
  }

  /** Removes another run's checkpoints once, if that was asked for. Call it before the first step. */
  async empty(): Promise<void> {
    if (!this.#isToEmpty) return;
    await checkpoints.takeOver(this.#storage, this.record);
    this.#isToEmpty = false;
  }

  /** Records once how the run has ended, unless the folder is not its own yet or cannot be written. */
  async end(how: checkpoints.RunEnd["how"]): Promise<void> {
    if (this.#isToEmpty || this.#isEndReported) return;
    this.#isEndReported = true;
    const at = new Date().toISOString();
    // A missing folder or a full disk is reported by the saves.
    await checkpoints.putOwner(this.#storage, this.record, { how, at }).catch(() => {});
  }

  /** Unlocks the folder once nothing writes there; a run without another end is recorded as failed. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.end("failed");
    await this.#lock[Symbol.asyncDispose]();
  }
}

async function claim(
  storage: checkpoints.CheckpointStorage,
  { directory, job, start, resume, overwrite }: RunFolderOptions,
): Promise<{ readonly record: checkpoints.RunRecord; readonly isToEmpty: boolean }> {
  const before = start.resumed && checkpoints.runOf(start.resumed.state);
  const owner = await checkpoints.ownerOf(storage);
  const fresh = { id: randomUUID(), job, startedAt: new Date().toISOString() };
  const resumed = resume === undefined ? undefined : (await checkpoints.placeOf(resume)).storage;
  const isInPlace = resumed !== undefined && placeName(resumed.location) === placeName(directory);
  if (isInPlace && (before === undefined || owner === undefined || before.id === owner.id)) {
    if (overwrite) {
      const hint = "leave one of them out";
      throw optionError(
        "checkpoint.overwrite",
        "left out where a run resumes in its own folder",
        overwrite,
        hint,
      );
    }
    const { end: _, ...record }: checkpoints.OwnerRecord = before ?? owner ?? fresh;
    await checkpoints.putOwner(storage, record);
    return { record, isToEmpty: false };
  }
  const record = { ...fresh, ...(before && { parent: before.id }) };
  await (overwrite ? checkpoints.refuseOthersFiles(storage) : checkpoints.takeEmpty(storage, record));
  return { record, isToEmpty: overwrite };
}

function placeName(location: string): string {
  return location.startsWith("s3://") ? location.replace(/\/+$/, "") : resolve(location);
}
