import type { ErrorReport } from "../error-report.ts";

/** Events of a save, in the order of its stages, and of a checkpoint that cannot be read. */
export type CheckpointEvent =
  | CheckpointStarted
  | CheckpointCopied
  | CheckpointProgressed
  | CheckpointSaved
  | CheckpointSkipped
  | CheckpointFailed
  | CheckpointRejected;

/** A checkpoint is being collected and written, while training goes on. */
export interface CheckpointStarted {
  readonly kind: "checkpoint.started";
  readonly step: number;
  /** Bytes that all ranks copy for it; the memory is freed as it is written. */
  readonly stagedBytes: number;
  /** How long training waited for the save before it. */
  readonly waitedMs: number;
}

/** A copy of the run's state is complete, and kept in memory in place of the one before. */
export interface CheckpointCopied {
  readonly kind: "checkpoint.copied";
  readonly step: number;
  readonly sizeBytes: number;
  readonly durationMs: number;
  /** As in {@link CheckpointSaved}. */
  readonly blockedMs: number;
}

/** More of a checkpoint is written; reported a few times per save. */
export interface CheckpointProgressed {
  readonly kind: "checkpoint.progressed";
  readonly step: number;
  readonly writtenBytes: number;
  /** Size of the complete checkpoint; `writtenBytes` at the end. */
  readonly totalBytes: number;
}

/** A checkpoint is on the disk under its final name. */
export interface CheckpointSaved {
  readonly kind: "checkpoint.saved";
  readonly step: number;
  readonly path: string;
  readonly sizeBytes: number;
  readonly durationMs: number;
  /**
   * How long training waited for copies of its state: updates waited before they overwrote it, or messages while the
   * shard's event loop was copying. The longest of all ranks. Does not include processor time and memory bandwidth that
   * the save took from training, nor `waitedMs` of `checkpoint.started`. Left out where another program trains.
   */
  readonly blockedMs?: number | undefined;
  /** Its name, if it was given one. */
  readonly as?: string | undefined;
  /** The metric that is stored with the name. */
  readonly metric?: number | undefined;
}

/** A checkpoint was due and was skipped, so that training need not wait; the next one is due as usual. */
export interface CheckpointSkipped {
  readonly kind: "checkpoint.skipped";
  readonly step: number;
  /** Why it was skipped: what is still in progress, or lacks room. */
  readonly reason: string;
  /** Number skipped since the run began, this one included. */
  readonly numSkipped: number;
}

/** A checkpoint could not be saved; the ones before it are kept, and training goes on. */
export interface CheckpointFailed {
  readonly kind: "checkpoint.failed";
  readonly step: number;
  readonly error: ErrorReport;
}

/** A checkpoint could not be read, and an older one is used in its place. */
export interface CheckpointRejected {
  readonly kind: "checkpoint.rejected";
  readonly path: string;
  readonly error: ErrorReport;
}
