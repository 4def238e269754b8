import { TroupeError } from "../../../errors/index.ts";
import { reportError, type TroupeEventBody } from "../../../job/events/index.ts";
import { isOfCheckpoint, runOf } from "../../../library/checkpoint/index.ts";
import { changedFiles, dataChanged, type FileMarks, markFolders } from "../../../library/data/index.ts";
import type { ActorRef } from "../../../runtime/index.ts";
import type { CheckpointerProtocol, InitialState, KeptState } from "../../protocols/index.ts";
import { type Resumed, type Start, startFromCheckpoint } from "../resume/start.ts";

/** Sources for the states that a run can go back to. */
export interface LastGoodOptions {
  readonly start: Start;
  /** The checkpoint, or folder of checkpoints, that the run resumed from, if any. */
  readonly resume: string | undefined;
  /** The id of the run; undefined where it has no folder. */
  readonly runId: string | undefined;
  readonly checkpointer: ActorRef<CheckpointerProtocol> | undefined;
  /**
   * Resolves once the checkpointer of a frozen copy is there, with its weights from its start; rejects if it does not come back. Left out
   * where the state can be read from elsewhere.
   */
  readonly holder?: (() => Promise<unknown>) | undefined;
  readonly deadlineMs: number;
  readonly emit: (event: TroupeEventBody) => void;
}

/** States that a run can go back to: the copy in memory, its written checkpoints, its initial state; damaged ones are skipped. */
export class LastGood {
  readonly #options: LastGoodOptions;
  #start: Start;
  /** Checkpoints written by this run, the newest last. */
  #saved: { readonly step: number; readonly path: string }[] = [];
  /** Checkpoints that could not be read. */
  readonly #rejected: string[] = [];
  #memoryIsLost = false;
  /** Marks of the files with the weights that the run began with. */
  readonly #weights: FileMarks;

  constructor(options: LastGoodOptions) {
    this.#options = options;
    this.#start = options.start;
    this.#weights = markFolders(foldersOf(this.#start.initial));
  }

  /** The run's start: an older checkpoint than originally, if that one was damaged. */
  get start(): Start {
    return this.#start;
  }

  /** Notes a save; `path` is undefined where the state is in memory only. */
  note({ step, path }: { readonly step: number; readonly path: string | undefined }): void {
    if (path !== undefined)
      this.#saved = [...this.#saved.filter((older) => older.step < step), { step, path }];
    this.#memoryIsLost = false;
  }

  /**
   * Finds the newest state available; prefers memory to disk for the same step.
   * @param latestStep - states after more updates than that are dropped for good
   * @throws the read error where no state is left; {TroupeError} `DATA_CHANGED` where the state needs weights from a
   * folder that has changed since the run began
   */
  async newest(latestStep = Number.POSITIVE_INFINITY): Promise<InitialState> {
    const initial = await this.#newest(latestStep);
    const [changed] = foldersOf(initial).length === 0 ? [] : changedFiles(this.#weights);
    if (changed !== undefined) throw dataChanged(changed, "another file, or other bytes", "pretrained");
    return initial;
  }

  async #newest(latestStep: number): Promise<InitialState> {
    const { checkpointer, deadlineMs } = this.#options;
    this.#saved = this.#saved.filter(({ step }) => step <= latestStep);
    const kept = await this.#kept(latestStep);
    const stored = await this.#stored();
    if (checkpointer === undefined || kept === undefined || kept.step < stored.step) return stored;
    const { step, progress } = kept;
    return this.#inUse({ kind: "memory", step, progress, checkpointer, deadlineMs });
  }

  /** Notes that a state could not be read: an older one is used from here on. @throws the read error if none is left */
  async reject(initial: InitialState, error: unknown): Promise<void> {
    if (initial.kind === "memory") {
      const { holder } = this.#options;
      this.#memoryIsLost = holder === undefined;
      await holder?.().catch(() => Promise.reject(error));
      return;
    }
    if (initial.kind !== "checkpoint") throw error;
    this.#reject(initial.path, error);
    if (initial === this.#start.initial) await this.#beginOlder(error);
  }

  /** The newest checkpoint of this run that can be opened, or its initial state. */
  async #stored(): Promise<InitialState> {
    for (const { path } of this.#saved.toReversed()) {
      if (this.#rejected.includes(path)) continue;
      try {
        return this.#inUse((await startOfRun(path, this.#options.runId)).initial);
      } catch (error) {
        this.#reject(path, error);
      }
    }
    return this.#beginning();
  }

  /** The run's initial state, or an older checkpoint if that one is damaged or belongs to another run by now. */
  async #beginning(): Promise<InitialState> {
    for (;;) {
      const { initial, resumed } = this.#start;
      if (resumed === undefined) return initial;
      try {
        await startOfRun(resumed.path, idOf(resumed));
        return initial;
      } catch (error) {
        await this.reject(initial, error);
      }
    }
  }

  async #kept(latestStep: number): Promise<KeptState | undefined> {
    const { checkpointer, deadlineMs } = this.#options;
    if (this.#memoryIsLost || checkpointer === undefined) return undefined;
    // A checkpointer that has ended has lost its state in memory.
    const { state } = await checkpointer.ask("kept", {}, { deadlineMs }).catch(() => ({ state: undefined }));
    if (state !== undefined && state.step > latestStep) this.#memoryIsLost = true;
    return this.#memoryIsLost ? undefined : state;
  }

  async #beginOlder(error: unknown): Promise<void> {
    const { resume } = this.#options;
    if (resume === undefined) throw error;
    try {
      const { base, resumed } = this.#start;
      const older = await startOfRun(resume, idOf(resumed), this.#rejected);
      this.#start = { ...older, base, initial: this.#inUse(older.initial) };
    } catch {
      throw error;
    }
  }

  /** Adds what no saved state contains: the base from the start of the run, and whether the model is frozen. */
  #inUse(initial: InitialState): InitialState {
    const {
      base,
      initial: { isFrozen },
    } = this.#start;
    return { ...initial, ...(base && { base: base.beginning }), ...(isFrozen && { isFrozen }) };
  }

  /** @throws `error` where it is not the checkpoint's: a store that cannot be reached may have it intact */
  #reject(path: string, error: unknown): void {
    if (!isOfCheckpoint(error)) throw error;
    this.#rejected.push(path);
    this.#options.emit({ kind: "checkpoint.rejected", path, error: reportError(error) });
  }
}

const idOf = (resumed: Resumed | undefined): string | undefined => resumed && runOf(resumed.state)?.id;

/**
 * Like {@link startFromCheckpoint}, for one run's checkpoints only.
 * @throws {TroupeError} `CHECKPOINT_TAKEN` where another run's folder is in its place
 */
async function startOfRun(
  path: string,
  runId: string | undefined,
  except: readonly string[] = [],
): Promise<Start> {
  const start = await startFromCheckpoint(path, undefined, except);
  const found = idOf(start.resumed);
  if (runId === undefined || found === runId) return start;
  throw new TroupeError("CHECKPOINT_TAKEN", {
    where: "checkpoint",
    expected: `a checkpoint of this run in ${start.resumed?.path ?? path}`,
    got: "one of another run",
    hint: "put this run's folder back where it was",
    fields: { path, run: found },
  });
}

/** Folders with weights that a state needs and no checkpoint of the run contains. */
function foldersOf(initial: InitialState): string[] {
  const own = initial.kind === "weights" ? [initial.folder] : [];
  const base = "base" in initial && initial.base?.kind === "weights" ? [initial.base.folder] : [];
  return [...own, ...base];
}
