import type { ErrorReport } from "../error-report.ts";
import type { HostJoined } from "./host.ts";

/** How a run as a whole goes: begun, set back, ended. */
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
  /** What is trained, as the user named it. */
  readonly job: string;
  /** The job's settings: its defaults, with what was given instead. */
  readonly jobSettings: Readonly<Record<string, string | number | boolean>>;
  readonly numRanks: number;
  /** How they stand: replicas, pipeline stages, ranks that split a layer, replicas that share experts. */
  readonly mesh: { readonly dp: number; readonly pp: number; readonly tp: number; readonly ep: number };
  readonly zero: 0 | 1 | 2 | 3;
  /** Where ranks live: on threads of one process, or each in a process of its own. */
  readonly placement: "thread" | "process";
  /** Where several hosts run it, what each has and which ranks live there at first. */
  readonly hosts?: readonly RunHost[];
  /** By rank, what it computes on: `cpu`, or a device of its host such as `cuda:0`. */
  readonly devices: readonly string[];
  readonly precision: string;
  readonly seed: number;
  readonly numParameters: number;
  /** Of them those that training changes, as the run begins: a frozen base's are not among them. */
  readonly numTrainable: number;
  /**
   * Where the run begins with a folder's weights: the parameters of its head that the folder lacks, which are drawn, and the
   * folder's entries for another head.
   */
  readonly pretrained?: { readonly fresh: readonly string[]; readonly dropped: readonly string[] };
  /** Steps done before, where the run goes on from a checkpoint; else 0. */
  readonly firstStep: number;
  /** Steps there will be in all. */
  readonly steps: number;
  /** The clock of activities and messages when this was told: what it read at `timeMs`. */
  readonly clockMs: number;
}

/** A host of a run, as it begins. */
export interface RunHost extends Omit<HostJoined, "kind"> {
  readonly ranks: readonly number[];
}

/** A run goes on from a checkpoint. Told after `run.started`. */
export interface RunResumed {
  readonly kind: "run.resumed";
  /** Of the checkpoint. */
  readonly path: string;
  /** Updates that it has seen. */
  readonly step: number;
  /** What is other now than in the checkpoint's run; none of it was left unsaid by who may say it. */
  readonly changes: readonly RunChange[];
}

/** Something that is other in a run that goes on than in the run of its checkpoint. */
export interface RunChange {
  /** Whether it is a setting of the job, what it is trained by, the data, or the run as a whole. */
  readonly of: "settings" | "training" | "data" | "run";
  /** Such as `layers`, `optimizer.lr` or `data.text`. */
  readonly name: string;
  readonly was: string;
  readonly is: string;
}

/** After a loss the run goes on from a state that it has been in before. */
export interface RunRestored {
  readonly kind: "run.restored";
  /** Updates that the state has seen. */
  readonly step: number;
  readonly from: "memory" | "checkpoint" | "beginning";
}

/** A signal lets a run end before its last step: it saves after the steps that are granted, as far as it saves at all. */
export interface RunInterrupted {
  readonly kind: "run.interrupted";
  /** Such as `SIGTERM`. */
  readonly signal: string;
  /** How long that may take, in milliseconds. */
  readonly graceMs: number;
}

/** Something of the job's own takes long up to the end of the first step: told after ten seconds, and again whenever that has doubled. */
export interface RunDelayed {
  readonly kind: "run.delayed";
  /** Such as "job.ts to be loaded". */
  readonly what: string;
  /** For how long, in milliseconds. */
  readonly waitedMs: number;
}

/** Why a run ended in order before its last planned step: by its loop's return, by `rank.stop()`, by `patience` of its training. */
export type EndReason = "loop-returned" | "loop-stopped" | "no-improvement";

/** A run made its last step, or was told to save and end before it. */
export interface RunFinished {
  readonly kind: "run.finished";
  /** Steps done in all. */
  readonly steps: number;
  /** Of the last step; NaN where none was made. */
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
