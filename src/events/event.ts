/** Version of the shape of events; raised when a field changes its meaning or goes. */
export const schemaVersion = 1;

/** An error as plain data. */
export interface ErrorReport {
  /** A code of `errorTable`, or one of the system's, where there is one. */
  readonly code?: string;
  readonly message: string;
  /** Where it first happened, `name#incarnation`. */
  readonly actor?: string;
  readonly cause?: ErrorReport;
}

/** A run has a model, data and a group of ranks, and is about to make its first step. */
export interface RunStarted {
  readonly kind: "run.started";
  /** What is trained, as the user named it. */
  readonly job: string;
  readonly numRanks: number;
  /** How they stand: replicas, pipeline stages, ranks that split a layer, replicas that share experts. */
  readonly mesh: { readonly dp: number; readonly pp: number; readonly tp: number; readonly ep: number };
  readonly zero: 0 | 1 | 2 | 3;
  /** Where ranks live: on threads of one process, or each in a process of its own. */
  readonly placement: "thread" | "process";
  readonly precision: string;
  readonly seed: number;
  readonly numParameters: number;
  /** Steps done before, where the run goes on from a checkpoint; else 0. */
  readonly firstStep: number;
  /** Steps there will be in all. */
  readonly steps: number;
}

/** Every rank has finished a step; its update is on the way. */
export interface StepFinished {
  readonly kind: "step.finished";
  /** Steps done so far, this one included. */
  readonly step: number;
  /** Mean over the step's tokens, before the update. */
  readonly lossNats: number;
  readonly learningRate: number;
  /** L2 norm over all parameters, before clipping; NaN where it was not measured. */
  readonly gradientNorm: number;
  /** Whether the gradient was not finite, and every rank left its parameters and the schedule as they were. */
  readonly skipped: boolean;
  /** What the loss was multiplied by before backward; left out where it is not scaled. */
  readonly lossScale?: number | undefined;
  /** Tokens of the step, over all ranks. */
  readonly numTokens: number;
  readonly tokensPerSecond: number;
  readonly durationMs: number;
  /** Share of all communication that computation hid, 0 to 1. */
  readonly overlap: number;
  /** Time a rank waited for communication, mean over the ranks. */
  readonly exposedMs: number;
  /** Memory of all processes of the run; what they share is counted once. */
  readonly residentBytes: number;
}

/** The loss on held-out data was measured. */
export interface EvaluationFinished {
  readonly kind: "evaluation.finished";
  readonly step: number;
  readonly lossNats: number;
  readonly numTokens: number;
}

/** The model wrote a sample. */
export interface TextGenerated {
  readonly kind: "text.generated";
  readonly step: number;
  readonly text: string;
}

/** A checkpoint is being collected and written, while training goes on. */
export interface CheckpointStarted {
  readonly kind: "checkpoint.started";
  readonly step: number;
}

/** A checkpoint is on the disk under its final name. */
export interface CheckpointSaved {
  readonly kind: "checkpoint.saved";
  readonly step: number;
  readonly path: string;
  readonly sizeBytes: number;
  readonly durationMs: number;
}

/** A checkpoint could not be saved; the ones before it are kept, and training goes on. */
export interface CheckpointFailed {
  readonly kind: "checkpoint.failed";
  readonly step: number;
  readonly error: ErrorReport;
}

/** An actor's thread runs. */
export interface ActorStarted {
  readonly kind: "actor.started";
  readonly actor: string;
  readonly incarnation: number;
}

/** An actor did something to a block; told only in traced runs. Times on the process's own clock. */
export interface ActivityFinished {
  readonly kind: "activity.finished";
  readonly actor: string;
  readonly incarnation: number;
  /** "compute": the rank has the block and goes on; "reduce" and "update": the block's gradient, its parameters. */
  readonly activity: "compute" | "reduce" | "update";
  readonly step: number;
  /** Index of the block, 0 for the root. */
  readonly blockIndex: number;
  readonly beginMs: number;
  readonly endMs: number;
}

/** An actor threw or its thread died. */
export interface ActorFailed {
  readonly kind: "actor.failed";
  readonly actor: string;
  readonly incarnation: number;
  readonly cause: ErrorReport;
}

/** A supervisor started an actor again; `cause` says why, where this actor was the one that failed. */
export interface ActorRestarted {
  readonly kind: "actor.restarted";
  readonly actor: string;
  readonly incarnation: number;
  readonly cause?: ErrorReport | undefined;
}

/** An actor ended without an error. */
export interface ActorStopped {
  readonly kind: "actor.stopped";
  readonly actor: string;
  readonly incarnation: number;
  /** Whether it had to be ended without its consent. */
  readonly forced: boolean;
}

/** Messages could not be delivered. */
export interface MessageUndelivered {
  readonly kind: "message.undelivered";
  readonly reason: string;
  readonly messageKind: string;
  readonly from: string;
  readonly to: string;
  /** How many, all alike. */
  readonly count: number;
}

/** A subscriber to events threw; told once for each subscriber, which goes on receiving. */
export interface SubscriberFailed {
  readonly kind: "subscriber.failed";
  readonly error: ErrorReport;
}

/** A reader of events was slower than they came, and the oldest were dropped. */
export interface EventsDropped {
  readonly kind: "events.dropped";
  /** Events dropped since the last time this was told. */
  readonly numDropped: number;
}

/** A run made its last step. */
export interface RunFinished {
  readonly kind: "run.finished";
  /** Steps done in all. */
  readonly steps: number;
  /** Of the last step; NaN where none was made. */
  readonly lossNats: number;
  readonly durationMs: number;
}

/** A run ended before its last step. */
export interface RunFailed {
  readonly kind: "run.failed";
  readonly error: ErrorReport;
}

/** What happened, as its author tells it. Plain data. */
export type TroupeEventBody =
  | ActivityFinished
  | ActorFailed
  | ActorRestarted
  | ActorStarted
  | ActorStopped
  | CheckpointFailed
  | CheckpointSaved
  | CheckpointStarted
  | EvaluationFinished
  | EventsDropped
  | MessageUndelivered
  | RunFailed
  | RunFinished
  | RunStarted
  | StepFinished
  | SubscriberFailed
  | TextGenerated;

/** What emission adds. */
export interface EventStamp {
  /** When it was emitted, in milliseconds since 1970. */
  readonly timeMs: number;
  readonly schemaVersion: typeof schemaVersion;
}

/** What happened in a run: one shape for each `kind`, past tense, numbers with their units in their names. */
export type TroupeEvent = TroupeEventBody & EventStamp;

/** The name of one kind of event. */
export type EventKind = TroupeEventBody["kind"];

/** The event of one kind. */
export type EventOf<Kind extends EventKind> = Extract<TroupeEventBody, { kind: Kind }> & EventStamp;

const maxCauses = 8;

/** Any thrown value as plain data, its causes with it. */
export function reportError(error: unknown, numCauses = 0): ErrorReport {
  if (!(error instanceof Error)) return { message: String(error) };
  const { code } = error as { code?: unknown };
  const hasCause = error.cause !== undefined && numCauses < maxCauses;
  return {
    ...(typeof code === "string" ? { code } : {}),
    message: error.message,
    ...(hasCause ? { cause: reportError(error.cause, numCauses + 1) } : {}),
  };
}
