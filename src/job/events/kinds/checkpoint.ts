import type { ErrorReport } from "../error-report.ts";

/** What became of a save, in the order in which one goes, and of a checkpoint that was to be read. */
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
  /** What all ranks copy of their state for it: memory that is given back as it is written. */
  readonly stagedBytes: number;
  /** How long training stood still for the save before it. */
  readonly waitedMs: number;
}

/** A copy of the run's state is whole, and kept in memory in place of the one before. */
export interface CheckpointCopied {
  readonly kind: "checkpoint.copied";
  readonly step: number;
  readonly sizeBytes: number;
  readonly durationMs: number;
  /** As of {@link CheckpointSaved}. */
  readonly blockedMs: number;
}

/** More of a checkpoint is written; told a few times in a save. */
export interface CheckpointProgressed {
  readonly kind: "checkpoint.progressed";
  readonly step: number;
  readonly writtenBytes: number;
  /** Of the whole checkpoint; `writtenBytes` at the end. */
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
   * For how long training waited for copies of its state: updates for what they were about to overwrite, and the shard's
   * messages while its event loop was busy copying. Of the rank that waited most. Not what the save took of processors and
   * memory that training would have used; `waitedMs` of `checkpoint.started` is beside it. None where another program trains.
   */
  readonly blockedMs?: number | undefined;
  /** Its name, if it was given one. */
  readonly as?: string | undefined;
  /** The metric that is kept with the name. */
  readonly metric?: number | undefined;
}

/** A checkpoint was due and was left out, so that training need not wait; the next one is due as always. */
export interface CheckpointSkipped {
  readonly kind: "checkpoint.skipped";
  readonly step: number;
  /** Why: what is still at work, or what there is no room for. */
  readonly reason: string;
  /** Left out since the run began, this one included. */
  readonly numSkipped: number;
}

/** A checkpoint could not be saved; the ones before it are kept, and training goes on. */
export interface CheckpointFailed {
  readonly kind: "checkpoint.failed";
  readonly step: number;
  readonly error: ErrorReport;
}

/** A checkpoint could not be read, and an older one is taken in its place. */
export interface CheckpointRejected {
  readonly kind: "checkpoint.rejected";
  readonly path: string;
  readonly error: ErrorReport;
}
