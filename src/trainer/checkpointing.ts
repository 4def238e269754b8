import type { NamesOf } from "../errors.ts";
import { optionError, refuseUnknown } from "./option-error.ts";
import { whole } from "./whole.ts";

/** Where a run's state is kept while it trains, how often, and what becomes of older ones. */
export interface CheckpointOptions {
  /** Folder of the run's checkpoints, or a store such as `s3://bucket/prefix`; left out: nothing goes to the disk. */
  readonly dir?: string;
  /** Steps between checkpoints, the last of them after the last step. 500 */
  readonly everySteps?: number;
  /**
   * What becomes of a save that falls due while one is under way: training waits for that one ("wait"), or it is left out
   * ("skip"), which is told. "wait"
   */
  readonly whenBusy?: "wait" | "skip";
  /** The newest so many checkpoints are kept, older ones removed once a new one is durable; all are kept. */
  readonly keepLast?: number;
  /** Of the older ones, those whose step is a multiple of this are kept too; none. */
  readonly keepEverySteps?: number;
  /** Steps between copies of the state that stay in memory, to go back to without reading a disk; none are kept. */
  readonly inMemoryEverySteps?: number;
  /** The most bytes that one save may copy: a run whose state is larger is refused. Infinity */
  readonly maxStagedBytes?: number;
}

/** {@link CheckpointOptions} with every choice made. Plain data. */
export interface CheckpointSettings {
  readonly directory: string | undefined;
  readonly everySteps: number;
  readonly whenBusy: "wait" | "skip";
  readonly keepLast: number | undefined;
  readonly keepEverySteps: number | undefined;
  readonly inMemoryEverySteps: number | undefined;
  readonly maxStagedBytes: number;
}

/**
 * Checks what is to be saved, when and where.
 * @throws {TroupeError} `OPTION`
 */
export function settleCheckpoint(options: CheckpointOptions | undefined): CheckpointSettings | undefined {
  if (options === undefined) return undefined;
  refuseUnknown("checkpoint", options, NAMES);
  const { dir, whenBusy = "wait", maxStagedBytes = Number.POSITIVE_INFINITY } = options;
  if (dir === undefined) checkMemoryOnly(options);
  if (whenBusy !== "wait" && whenBusy !== "skip")
    throw optionError("checkpoint.whenBusy", "wait or skip", whenBusy);
  if (options.keepEverySteps !== undefined && options.keepLast === undefined) {
    throw optionError(
      "checkpoint.keepEverySteps",
      "used with keepLast",
      options.keepEverySteps,
      "without it none are removed",
    );
  }
  if (!(maxStagedBytes > 0)) throw optionError("checkpoint.maxStagedBytes", "> 0", maxStagedBytes);
  const steps = (name: "keepLast" | "keepEverySteps" | "inMemoryEverySteps") => {
    const value = options[name];
    return value === undefined ? undefined : whole(`checkpoint.${name}`, value, 1);
  };
  return {
    directory: dir,
    everySteps: whole("checkpoint.everySteps", options.everySteps ?? 500, 1),
    whenBusy,
    keepLast: steps("keepLast"),
    keepEverySteps: steps("keepEverySteps"),
    inMemoryEverySteps: steps("inMemoryEverySteps"),
    maxStagedBytes,
  };
}

const NAMES: NamesOf<CheckpointOptions> = {
  dir: true,
  everySteps: true,
  whenBusy: true,
  keepLast: true,
  keepEverySteps: true,
  inMemoryEverySteps: true,
  maxStagedBytes: true,
};

/** What is said of files says nothing where there are none. */
function checkMemoryOnly(options: CheckpointOptions): void {
  const ofFiles = (["everySteps", "keepLast", "keepEverySteps"] as const).filter(
    (name) => options[name] !== undefined,
  );
  if (ofFiles.length > 0 || options.inMemoryEverySteps === undefined) {
    throw optionError(
      "checkpoint.dir",
      "a folder",
      undefined,
      "leave it out only to keep copies in memory alone, by inMemoryEverySteps",
    );
  }
}
