import { TroupeError } from "../../../errors/index.ts";
import { reportError, type TroupeEventBody } from "../../../job/events/index.ts";
import { runOf } from "../../../library/checkpoint/index.ts";
import { changedFiles, dataChanged, type FileMarks, markFolders } from "../../../library/data/index.ts";
import type { ActorRef } from "../../../runtime/index.ts";
import type { CheckpointerProtocol, InitialState, KeptState } from "../../protocols/index.ts";
import { type Resumed, type Start, startFromCheckpoint } from "../resume/start.ts";

/** What the states that a run can go back to are looked for in. */
export interface LastGoodOptions {
  /** Where the run began. */
  readonly start: Start;
  /** What it began from, where that was a checkpoint or a folder of them. */
  readonly resume: string | undefined;
  /** The id of the run; undefined where it has no folder. */
  readonly runId: string | undefined;
  readonly checkpointer: ActorRef<CheckpointerProtocol> | undefined;
  readonly deadlineMs: number;
  readonly emit: (event: TroupeEventBody) => void;
}

/**
 * The states that a run can go back to: the copy in the checkpointer's memory, the checkpoints that it has written
 * itself, and where it began. What turns out damaged is passed over for what is older.
 */
export class LastGood {
  readonly #options: LastGoodOptions;
  #start: Start;
  /** Checkpoints that this run has written, the newest last. */
  #saved: { readonly step: number; readonly path: string }[] = [];
  /** Checkpoints that could not be read. */
  readonly #rejected: string[] = [];
  #memoryIsLost = false;
  /** The files of the folders whose weights the run began with. */
  readonly #weights: FileMarks;

  constructor(options: LastGoodOptions) {
    this.#options = options;
    this.#start = options.start;
    this.#weights = markFolders(foldersOf(this.#start.initial));
  }

  /** Where the run begins, or began: an older checkpoint than at first where that one was damaged. */
  get start(): Start {
    return this.#start;
  }

  /** Notes what the run has saved: where on the disk, unless it is in memory alone. */
  note({ step, path }: { readonly step: number; readonly path: string | undefined }): void {
    if (path !== undefined) {
      this.#saved = [...this.#saved.filter((older) => older.step < step), { step, path }];
    }
    this.#memoryIsLost = false;
  }

  /**
   * The newest state that is at hand, that of the memory where it is as new as that of the disk.
   * @param latestStep - states that have seen more updates are forgotten for good: the run goes back behind them
   * @throws what reading throws where nothing is left to go back to; {TroupeError} `DATA_CHANGED` where it needs weights of a
   *   folder that has changed since the run began
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
    const kept = await this.#kept();
    const stored = await this.#stored();
    if (checkpointer === undefined || kept === undefined) return stored;
    if (kept.step > latestStep || kept.step < stored.step) return stored;
    const { step, progress } = kept;
    return this.#onBase({ kind: "memory", step, progress, checkpointer, deadlineMs });
  }

  /**
   * A state could not be read: from here on what is older is taken.
   * @throws what reading throws where nothing older is left
   */
  async reject(initial: InitialState, error: TroupeError): Promise<void> {
    if (initial.kind === "memory") {
      this.#memoryIsLost = true;
      return;
    }
    if (initial.kind !== "checkpoint") throw error;
    this.#reject(initial.path, error);
    if (initial === this.#start.initial) await this.#beginOlder(error);
  }

  /** The newest checkpoint of this run that can be opened, else where it began. */
  async #stored(): Promise<InitialState> {
    for (const { path } of this.#saved.toReversed()) {
      if (this.#rejected.includes(path)) continue;
      try {
        return this.#onBase((await startOfRun(path, this.#options.runId)).initial);
      } catch (error) {
        if (!(error instanceof TroupeError)) throw error;
        this.#reject(path, error);
      }
    }
    return this.#beginning();
  }

  /** The state that the run began with; an older checkpoint if that one is damaged by now, or another run's lies in its place. */
  async #beginning(): Promise<InitialState> {
    for (;;) {
      const { initial, resumed } = this.#start;
      if (resumed === undefined) return initial;
      try {
        await startOfRun(resumed.path, idOf(resumed));
        return initial;
      } catch (error) {
        if (!(error instanceof TroupeError)) throw error;
        await this.reject(initial, error);
      }
    }
  }

  async #kept(): Promise<KeptState | undefined> {
    const { checkpointer, deadlineMs } = this.#options;
    if (this.#memoryIsLost || checkpointer === undefined) return undefined;
    // A checkpointer that is gone has lost what it kept.
    const { state } = await checkpointer.ask("kept", {}, { deadlineMs }).catch(() => ({ state: undefined }));
    return state;
  }

  async #beginOlder(error: TroupeError): Promise<void> {
    const { resume } = this.#options;
    if (resume === undefined) throw error;
    try {
      const { base, resumed } = this.#start;
      const older = await startOfRun(resume, idOf(resumed), this.#rejected);
      this.#start = { ...older, base, initial: this.#onBase(older.initial) };
    } catch {
      throw error;
    }
  }

  /** What no state holds is where it was in the beginning. */
  #onBase(initial: InitialState): InitialState {
    const { base } = this.#start;
    return base === undefined ? initial : { ...initial, base: base.beginning };
  }

  #reject(path: string, error: TroupeError): void {
    this.#rejected.push(path);
    this.#options.emit({ kind: "checkpoint.rejected", path, error: reportError(error) });
  }
}

function idOf(resumed: Resumed | undefined): string | undefined {
  return resumed && runOf(resumed.state)?.id;
}

/**
 * As {@link startFromCheckpoint}, of one run alone: its folder may have been moved away, and another's lie there.
 * @throws {TroupeError} `CHECKPOINT_TAKEN` where the checkpoint is of another run
 */
async function startOfRun(
  path: string,
  runId: string | undefined,
  except: readonly string[] = [],
): Promise<Start> {
  const start = await startFromCheckpoint(path, undefined, except);
  const found = idOf(start.resumed);
  if (runId === undefined || found === runId) return start;
  throw new TroupeError(
    "CHECKPOINT_TAKEN",
    {
      where: "checkpoint",
      expected: `a checkpoint of this run in ${start.resumed?.path ?? path}`,
      got: "one of another run",
      hint: "put this run's folder back where it was",
    },
    { fields: { path, run: found } },
  );
}

/** The folders of which a state reads weights that no checkpoint of the run holds. */
function foldersOf(initial: InitialState): string[] {
  const own = initial.kind === "weights" ? [initial.folder] : [];
  const base = "base" in initial && initial.base?.kind === "weights" ? [initial.base.folder] : [];
  return [...own, ...base];
}
