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
  /** The clock of activities and messages when this was told: what it read at `timeMs`. */
  readonly clockMs: number;
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
  /** Time a rank waited for communication; a mean over the ranks, as are the next four. */
  readonly exposedMs: number;
  /** Parameters, activations and their gradients were under way to the rank, waited for or not. */
  readonly gatherMs: number;
  /** Gradients of parameters were under way between the ranks or being summed. */
  readonly reduceMs: number;
  /** The optimizer was updating parameters. */
  readonly updateMs: number;
  /** The rank waited for its batch. */
  readonly dataMs: number;
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

/** A checkpoint was due and was left out, so that training need not wait; the next one is due as always. */
export interface CheckpointSkipped {
  readonly kind: "checkpoint.skipped";
  readonly step: number;
  /** Why: what is still at work, or what there is no room for. */
  readonly reason: string;
  /** Left out since the run began, this one included. */
  readonly numSkipped: number;
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
}

/** A checkpoint could not be read, and an older one is taken in its place. */
export interface CheckpointRejected {
  readonly kind: "checkpoint.rejected";
  readonly path: string;
  readonly error: ErrorReport;
}

/** A checkpoint could not be saved; the ones before it are kept, and training goes on. */
export interface CheckpointFailed {
  readonly kind: "checkpoint.failed";
  readonly step: number;
  readonly error: ErrorReport;
}

/** What a run looked like was outside what it should; what was done about it. */
export interface AnomalyDetected {
  readonly kind: "anomaly.detected";
  readonly step: number;
  readonly anomaly: "loss-not-finite" | "gradient-not-finite" | "loss-spike" | "straggler";
  /** What was measured: nats, a norm, or milliseconds. */
  readonly value: number;
  /** What it should not have passed. */
  readonly limit: number;
  /** The rank it was seen on, where it is of one rank. */
  readonly rank?: number | undefined;
  /** What the run was told to do about such a thing. */
  readonly policy: "tell" | "stop" | "skip" | "rewind";
  /** What was done. */
  readonly action: "told" | "stopped" | "skipped" | "rewound";
}

/** What one rank holds was counted, its shard and its offload actor with it; told every so many steps. */
export interface MemoryMeasured {
  readonly kind: "memory.measured";
  readonly step: number;
  readonly rank: number;
  /** By kind, such as "parameters" or "activations": bytes that tensors asked for, now and at most since the start. */
  readonly byKind: Readonly<Record<string, { readonly liveBytes: number; readonly peakBytes: number }>>;
}

/** The values of a parameter or of its averaged gradient were sorted into buckets; told every so many steps, where asked. */
export interface HistogramMeasured {
  readonly kind: "histogram.measured";
  readonly step: number;
  /** Of the parameter. */
  readonly name: string;
  readonly of: "weights" | "gradients";
  /** Of the finite values; of none, 0. */
  readonly min: number;
  readonly max: number;
  readonly sum: number;
  readonly sumOfSquares: number;
  /** Values in all, those that are not finite included. */
  readonly numValues: number;
  /** Infinite, or not a number. */
  readonly numNotFinite: number;
  /** Upper bounds of the buckets, rising; each bucket begins where the one before it ends, the first with `min`. */
  readonly limits: readonly number[];
  /** Finite values in each bucket. */
  readonly counts: readonly number[];
}

/** An actor's thread runs. */
export interface ActorStarted {
  readonly kind: "actor.started";
  readonly actor: string;
  readonly incarnation: number;
}

/** An actor did a piece of work; told only in traced runs. Times on the clock of `run.started`. */
export interface ActivityFinished {
  readonly kind: "activity.finished";
  readonly actor: string;
  readonly incarnation: number;
  /**
   * "forward" and "backward" of a micro-batch on a rank; "wait": it stood still for a block, or for another stage;
   * "compute": it has the block and goes on, a moment; "reduce" and "update": the block's gradient, its parameters; "bring"
   * and "store": its offloaded parameters are read from the file, or written into it.
   */
  readonly activity: "forward" | "backward" | "wait" | "compute" | "reduce" | "update" | "bring" | "store";
  readonly step: number;
  /** Of a block, 0 for the root; −1 where the work is of no one block. */
  readonly blockIndex: number;
  /** Of a micro-batch, where the work is of one. */
  readonly microBatchIndex?: number | undefined;
  readonly beginMs: number;
  readonly endMs: number;
}

/** An actor handled a message that belongs to a trace. Times on the clock of `run.started`. */
export interface MessageHandled {
  readonly kind: "message.handled";
  /** Who handled it. */
  readonly actor: string;
  readonly incarnation: number;
  /** Who sent it, `name#incarnation`. */
  readonly from: string;
  readonly messageKind: string;
  /** Of everything that one beginning has caused, on all threads and in all processes: 32 hexadecimal digits. */
  readonly traceId: string;
  /** Of this handling: 16 hexadecimal digits. */
  readonly spanId: string;
  /** The handling in which it was sent; none for what began the trace. */
  readonly parentId?: string | undefined;
  /** Whether the handler waited meanwhile and let others be handled. */
  readonly awaited: boolean;
  readonly sentMs: number;
  /** When it reached the mailbox of who handled it. */
  readonly receivedMs: number;
  readonly beginMs: number;
  readonly endMs: number;
}

/** An actor has shown no progress for too long: what it is at, as a healthy thread reads it. */
export interface ActorStalled {
  readonly kind: "actor.stalled";
  readonly actor: string;
  readonly incarnation: number;
  /** Of the process it lives in. */
  readonly pid: number;
  /** "handling" or "waiting", or on its way up or down. */
  readonly state: string;
  /** How long it has been at it. */
  readonly ageMs: number;
  /** The message it is handling. */
  readonly handling?: string | undefined;
  /** Whose answer it waits for, `name#incarnation`. */
  readonly waitingFor?: string | undefined;
  /** What it said last it was doing: the operation, the block it is for, its number. */
  readonly op?: { readonly name: string; readonly block: string; readonly sequence: number } | undefined;
  /** The collective that it is in or was in last, among whom, its number, and how long it has been there or gone on. */
  readonly collective?: ReachedCollective | undefined;
}

/** The collective that an actor has come to. */
export interface ReachedCollective {
  readonly name: string;
  readonly group: string;
  readonly sequence: number;
  /** Whether it waits there for others, in native code. */
  readonly isWaiting: boolean;
  /** How long it has been there, or gone on from there. */
  readonly ageMs: number;
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
  /** The actor that told more than was taken, where they were lost on their way from it. */
  readonly actor?: string | undefined;
  /** Events dropped since the last time this was told. */
  readonly numDropped: number;
}

/** After a loss the run goes on from a state that it has been in before. */
export interface RunRestored {
  readonly kind: "run.restored";
  /** Updates that the state has seen. */
  readonly step: number;
  readonly from: "memory" | "checkpoint" | "beginning";
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
  | ActorStalled
  | ActorStarted
  | ActorStopped
  | AnomalyDetected
  | CheckpointFailed
  | CheckpointCopied
  | CheckpointProgressed
  | CheckpointRejected
  | CheckpointSaved
  | CheckpointSkipped
  | CheckpointStarted
  | EvaluationFinished
  | EventsDropped
  | HistogramMeasured
  | MemoryMeasured
  | MessageHandled
  | MessageUndelivered
  | RunFailed
  | RunFinished
  | RunRestored
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
