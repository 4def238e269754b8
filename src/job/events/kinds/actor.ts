import type { ErrorReport, SourceFrame } from "../error-report.ts";

/** Events of an actor's start, failure, restart and end. */
export type ActorEvent = ActorStarted | ActorStalled | ActorFailed | ActorRestarted | ActorStopped;

/** The actor that an event is about. */
export interface ActorFacts {
  readonly actor: string;
  readonly incarnation: number;
  /** Its role in the run: "rank", "shard", "offload", "writer", "feeder", "checkpointer". */
  readonly role?: string | undefined;
  /** Its number among the actors of that role, if there are several. */
  readonly index?: number | undefined;
}

/** An actor's thread runs. */
export interface ActorStarted extends ActorFacts {
  readonly kind: "actor.started";
}

/**
 * An actor has shown no progress for too long, or waits for a function of the user's. The fields show its work, as another thread
 * reads it. Reported once for each wait.
 */
export interface ActorStalled extends ActorFacts {
  readonly kind: "actor.stalled";
  /** Process that the actor runs in. */
  readonly pid: number;
  /** "handling" or "waiting", or starting or stopping. */
  readonly state: string;
  /** How long it has been in that state. */
  readonly ageMs: number;
  /** The message it is handling. */
  readonly handling?: string | undefined;
  /** The actor whose answer it waits for, `name#incarnation`. */
  readonly waitingFor?: string | undefined;
  /** The operation that it noted last, with its block and its number. */
  readonly op?: { readonly name: string; readonly block: string; readonly sequence: number } | undefined;
  /** The function of the user's that it waits for. */
  readonly call?: AwaitedCall | undefined;
  /** The collective that it is in, or was in last: its group, its number, and for how long. */
  readonly collective?: ReachedCollective | undefined;
}

/** A call into the user's code that has not returned. */
export interface AwaitedCall {
  /** The function, with the split and the position of a batch: 'batch("train", 0, 8) of the job\'s data'. */
  readonly what: string;
  /** Whether it has returned a promise that has not settled. */
  readonly isPending: boolean;
  readonly ageMs: number;
  /** The lines of the user's source that it has reached, innermost first, if they could be seen. */
  readonly frames?: readonly SourceFrame[];
}

/** The collective that an actor has reached. */
export interface ReachedCollective {
  readonly name: string;
  readonly group: string;
  readonly sequence: number;
  /** Whether it waits there for other ranks, in native code. */
  readonly isWaiting: boolean;
  /** How long it has been there, or how long ago it left. */
  readonly ageMs: number;
}

/** An actor threw or its thread died. */
export interface ActorFailed extends ActorFacts {
  readonly kind: "actor.failed";
  readonly cause: ErrorReport;
}

/** A supervisor started an actor again; `cause` says why, where this actor was the one that failed. */
export interface ActorRestarted extends ActorFacts {
  readonly kind: "actor.restarted";
  readonly cause?: ErrorReport | undefined;
}

/** An actor ended without an error. */
export interface ActorStopped extends ActorFacts {
  readonly kind: "actor.stopped";
  /** Whether it had to be ended without its consent. */
  readonly forced: boolean;
}
