/**
 * What the server tells a page, as server-sent events: `frame` brings what changed of the run, `board` what every actor
 * does just now. Plain JSON; numbers that JSON lacks are written as "NaN", "Infinity" and "-Infinity".
 */

/** What changed, a part each: it replaces the part that the page has, but for tables, of which it replaces the end. */
export interface Frame {
  /** The server's clock when this was sent, in milliseconds since 1970. */
  readonly timeMs: number;
  readonly run?: RunPart;
  readonly steps?: TableChange;
  readonly evaluations?: TableChange;
  readonly memory?: TableChange;
  readonly checkpoints?: CheckpointsPart;
  /** Newest last. */
  readonly incidents?: readonly Incident[];
  /** What the model wrote last. */
  readonly sample?: { readonly step: number; readonly text: string } | null;
  /** What became of each actor, by the events alone. */
  readonly actors?: readonly ActorPart[];
}

/** What a run is and where it stands. */
export interface RunPart {
  /** "restarting": an actor of the rank group was lost, and no step was made since. */
  readonly state: "waiting" | "running" | "restarting" | "finished" | "failed" | "silent";
  /** Undefined until it is known. */
  readonly facts?: RunFacts | undefined;
  /** Steps done so far. */
  readonly step: number;
  /** Samples trained on by this run, over all ranks. */
  readonly numSamples: number;
  /** The same in tokens; 0 where they are not counted. */
  readonly numTokens: number;
  /** The latest loss and held-out loss. */
  readonly lossNats: number;
  readonly evaluationLossNats: number;
  /** Duration of a step, smoothed; NaN before the first. */
  readonly stepMs: number;
  readonly startedAtMs: number;
  /** When it last came forward. */
  readonly progressAtMs: number;
  readonly endedAtMs?: number | undefined;
  /** Why it failed. */
  readonly error?: string | undefined;
  /** How often the rank group was started again. */
  readonly numRestarts: number;
}

/** What is known of a run from its beginning. */
export interface RunFacts {
  readonly job: string;
  readonly numRanks: number;
  readonly mesh: { readonly dp: number; readonly pp: number; readonly tp: number; readonly ep: number };
  readonly zero: number;
  readonly placement: string;
  readonly precision: string;
  readonly seed: number;
  readonly numParameters: number;
  readonly numTrainable: number;
  readonly firstStep: number;
  readonly steps: number;
}

/** A table by columns: the page keeps its first `numKept` rows and puts these behind them. */
export interface TableChange {
  readonly numKept: number;
  /** All of one length; the first field is `step`, which rises. */
  readonly columns: Readonly<Record<string, readonly number[]>>;
}

/** How saving goes. */
export interface CheckpointsPart {
  readonly numSaved: number;
  readonly numFailed: number;
  readonly numSkipped: number;
  /** The latest ones, newest last. */
  readonly latest: readonly CheckpointPart[];
}

/** One save. */
export interface CheckpointPart {
  readonly step: number;
  readonly state: "saving" | "saved" | "failed" | "skipped";
  readonly startedAtMs: number;
  readonly writtenBytes?: number | undefined;
  readonly totalBytes?: number | undefined;
  readonly durationMs?: number | undefined;
  readonly path?: string | undefined;
  /** Why it failed or was left out. */
  readonly reason?: string | undefined;
}

/** Something that a person should know of. */
export interface Incident {
  readonly timeMs: number;
  /** Steps done when it happened. */
  readonly step: number;
  readonly tone: "plain" | "good" | "bad";
  readonly text: string;
  /** How often, one right after the other. */
  readonly count: number;
  /** Whether the run went back from here, to make steps again. */
  readonly restart: boolean;
}

/** What became of an actor. */
export interface ActorPart {
  readonly actor: string;
  readonly role: string | undefined;
  readonly incarnation: number;
  readonly state: "started" | "failed" | "stopped";
  readonly sinceMs: number;
}

/** What one actor does, read from shared memory: right also while it is stuck. The runtime's inspection is one. */
export interface ActorStatus {
  readonly actor: string;
  /** Such as "rank". */
  readonly role?: string;
  readonly incarnation: number;
  readonly pid: number;
  readonly state: string;
  /** How long it has been in this state. */
  readonly ageMs: number;
  readonly handling: string | undefined;
  readonly waitingFor: string | undefined;
  readonly numQueued: number;
  readonly numHandled: number;
  readonly op:
    | { readonly name: string; readonly block: string; readonly sequence: number; readonly ageMs: number }
    | undefined;
  /** The collective that it is in or was in last. */
  readonly collective: CollectivePart | undefined;
}

/** A collective that an actor has come to, as the board tells it. */
export interface CollectivePart {
  readonly name: string;
  readonly group: string;
  readonly sequence: number;
  readonly isWaiting: boolean;
  readonly ageMs: number;
}

/** The status board, and what actors were seen doing since it was last sent. */
export interface BoardFrame {
  readonly timeMs: number;
  /** Every living actor; undefined where there is no board to look at, as with a recorded run. */
  readonly actors?: readonly ActorStatus[] | undefined;
  /** Pieces of work that ended, of traced runs; thinned where there are many. */
  readonly spans?: readonly Span[];
}

/** A piece of an actor's work, on the clock of `timeMs`. */
export interface Span {
  readonly actor: string;
  readonly role: string | undefined;
  /** A message's kind, or an activity. */
  readonly work: string;
  /** Whether it was waiting for others at times, and left the actor free meanwhile. */
  readonly awaited: boolean;
  readonly beginMs: number;
  readonly endMs: number;
}
