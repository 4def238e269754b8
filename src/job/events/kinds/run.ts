import type { ErrorReport } from "../error-report.ts";
import type { HostJoined } from "./host.ts";

/** Events of a run's start, resets and end. */
export type RunEvent =
  | RunStarted
  | RunResumed
  | RunRestored
  | RunInterrupted
  | RunDelayed
  | RunFinished
  | RunFailed;

/** A run has a model, data and a group of ranks, and is about to make its first step. */
export interface RunStarted {
  readonly kind: "run.started";
  /** The trained job, as the user named it. */
  readonly job: string;
  /** The job's settings: its defaults, replaced by those given. */
  readonly jobSettings: Readonly<Record<string, string | number | boolean>>;
  readonly numRanks: number;
  /** Size of each axis of the mesh: replicas, pipeline stages, tensor-parallel ranks, expert-parallel replicas. */
  readonly mesh: { readonly dp: number; readonly pp: number; readonly tp: number; readonly ep: number };
  readonly zero: 0 | 1 | 2 | 3;
  /** Whether ranks run in threads of one process, or each in a process of its own. */
  readonly placement: "thread" | "process";
  /** The hosts of a run on several, their means, and the ranks that start on each. */
  readonly hosts?: readonly RunHost[];
  /** The device of each rank: `cpu`, or a device of its host such as `cuda:0`. */
  readonly devices: readonly string[];
  readonly precision: string;
  readonly seed: number;
  readonly numParameters: number;
  /** Number of parameters that training changes, as the run begins: without a frozen base's. */
  readonly numTrainable: number;
  /**
   * Where the run begins with a folder's weights: the parameters of its head that the folder lacks, which are drawn,
   * and the folder's entries for another head.
   */
  readonly pretrained?: { readonly fresh: readonly string[]; readonly dropped: readonly string[] };
  /** Steps made before, where the run resumes from a checkpoint; else 0. */
  readonly firstStep: number;
  /** Planned steps in all. */
  readonly steps: number;
  /** The clock of activities and messages at the time of this event (`timeMs`). */
  readonly clockMs: number;
}

/** A host of a run, as it begins. */
export interface RunHost extends Omit<HostJoined, "kind"> {
  readonly ranks: readonly number[];
}

/** A run resumes from a checkpoint. Reported after `run.started`. */
export interface RunResumed {
  readonly kind: "run.resumed";
  /** Path of the checkpoint. */
  readonly path: string;
  /** Number of updates made to its state. */
  readonly step: number;
  /** Differences from the checkpoint's run, all of them allowed. */
  readonly changes: readonly RunChange[];
}

/** A difference between a resumed run and the run of its checkpoint. */
export interface RunChange {
  /** Whether it is a setting of the job, part of how it trains, the data, or the run in general. */
  readonly of: "settings" | "training" | "data" | "run";
  /** Such as `layers`, `optimizer.lr` or `data.text`. */
  readonly name: string;
  readonly was: string;
  readonly is: string;
}

/** After a failure the run continues from an earlier state. */
export interface RunRestored {
  readonly kind: "run.restored";
  /** Number of updates made to that state. */
  readonly step: number;
  readonly from: "memory" | "checkpoint" | "beginning";
  /** Milliseconds from the notice of the failure until new actors had taken the place of all of the group. */
  readonly startedMs: number;
  /** Milliseconds from the notice until the actors had joined and declared the model. */
  readonly joinedMs: number;
  /** Milliseconds from the notice until every rank and shard had its part of the state. */
  readonly durationMs: number;
}

/**
 * A signal asks a run to end early: it finishes the granted steps and saves, if it saves at all. While a launch's script has no model open,
 * a signal to another host is reported at once, and again by the next model, which ends.
 */
export interface RunInterrupted {
  readonly kind: "run.interrupted";
  /** Such as `SIGTERM`. */
  readonly signal: string;
  /** The most time that this may take, in milliseconds; undefined while no run or model is open. */
  readonly graceMs: number | undefined;
}

/**
 * Something in the job takes long before the end of the first step: reported after ten seconds, and again whenever that
 * has doubled.
 */
export interface RunDelayed {
  readonly kind: "run.delayed";
  /** Such as "job.ts to be loaded". */
  readonly what: string;
  /** How long it has taken so far, in milliseconds. */
  readonly waitedMs: number;
}

/**
 * Why a run ended in order before its last planned step: its loop returned, it called `rank.stop()`, or `patience` of
 * its training ran out.
 */
export type EndReason = "loop-returned" | "loop-stopped" | "no-improvement";

/** A run made its last step, or was asked to save and end early. */
export interface RunFinished {
  readonly kind: "run.finished";
  /** Steps made in all. */
  readonly steps: number;
  /** Loss of the last step; NaN where none was made. */
  readonly lossNats: number;
  readonly durationMs: number;
  /** Planned steps that were not made because the run ended in order before them; left out if there are none. */
  readonly numLeft?: number;
  /** Why it ended before its last planned step, if the job itself ended it. */
  readonly endedBy?: EndReason | undefined;
}

/** A run ended before its last step. */
export interface RunFailed {
  readonly kind: "run.failed";
  readonly error: ErrorReport;
}
